import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { IpPermission } from "@aws-sdk/client-ec2";
import { adminAddressCheck } from "../../../../../src/backend/cloud/checks/admin-address.ts";
import type { CloudFacts } from "../../../../../src/backend/cloud/checks/facts.ts";
import { creationDirectory, creationFiles } from "../../../../../src/system/files/creation-folder.ts";
import { writePrivateFile } from "../../../../../src/system/files/private-file.ts";
import { outcomeText } from "../../../../support/outcome-text.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const { signal } = new AbortController();
const region = "us-west-2";
const here = [{ CidrIp: "192.0.2.0/24" }];

/** What the check says on a machine at 192.0.2.7 that has created a cluster for each of these groups. */
async function told(groups: readonly (readonly IpPermission[])[]): Promise<string> {
  await using state = await scratchFolder();
  const found = groups.map((rules, place) => ({
    id: `sg-${place}`,
    clusterId: `cluster-${place}`,
    creationId: "0123456789abcdef",
    rules,
  }));
  for (const { clusterId, creationId } of found) {
    const directory = creationDirectory(join(state.path, "cluster-e2e", "cloud", region), clusterId, creationId);
    await mkdir(directory, { recursive: true });
    await writePrivateFile(creationFiles(directory).privateKey, "a key\n");
  }
  const facts = {
    address: async () => "192.0.2.7",
    instances: async () => ({ machines: found.map(({ id }) => ({ state: "running", groupIds: [id] })) }),
    groups: async () => ({ groups: found }),
  } as unknown as CloudFacts;
  const check = adminAddressCheck(facts, { region, environment: { XDG_STATE_HOME: state.path } });
  return outcomeText(await check.run(signal));
}

const allowed = "pass: This machine's public address is 192.0.2.7, and the clusters created here allow it";

test.each<[string, IpPermission]>([
  ["port 22", { IpProtocol: "tcp", FromPort: 22, ToPort: 22, IpRanges: here }],
  ["a range of ports that ends with it", { IpProtocol: "tcp", FromPort: 20, ToPort: 22, IpRanges: here }],
  ["all TCP ports", { IpProtocol: "tcp", IpRanges: here }],
  ["everything", { IpProtocol: "-1", IpRanges: here }],
])("a cluster admits this machine with a rule for %s", async (_, rule) => {
  expect(await told([[rule]])).toBe(allowed);
});

test.each<[string, IpPermission]>([
  ["UDP", { IpProtocol: "udp", FromPort: 22, ToPort: 22, IpRanges: here }],
  ["other ports below", { IpProtocol: "tcp", FromPort: 1, ToPort: 21, IpRanges: here }],
  ["other ports above", { IpProtocol: "tcp", FromPort: 23, ToPort: 8080, IpRanges: here }],
])("a cluster doesn't admit this machine with a rule for %s", async (_, rule) => {
  expect(await told([[rule]])).toBe(
    "warn: This machine's public address is 192.0.2.7, which is not allowed to reach cluster cluster-0 (security group sg-0: none)." +
      " → Allow it: run the admit command for cluster-0.",
  );
});

test("all clusters that don't admit this machine are named", async () => {
  const elsewhere = { IpProtocol: "tcp", FromPort: 22, ToPort: 22, IpRanges: [{ CidrIp: "203.0.113.0/24" }] };
  expect(await told([[], [elsewhere], [{ IpProtocol: "-1", IpRanges: here }]])).toBe(
    "warn: This machine's public address is 192.0.2.7, which is not allowed to reach clusters " +
      "cluster-0 (security group sg-0: none); cluster-1 (security group sg-1: 203.0.113.0/24)." +
      " → Allow it: run the admit command for cluster-0 and cluster-1.",
  );
});

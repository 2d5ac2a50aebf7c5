/** Whether clusters that were created here still let this machine in, and what ended ones left. */

import type { IpPermission } from "@aws-sdk/client-ec2";
import { expect, test } from "bun:test";
import {
  adminAddressCheck,
  leftoversCheck,
} from "../../../../../src/backend/cloud/checks/checks.ts";
import type { CloudFacts } from "../../../../../src/backend/cloud/checks/facts.ts";
import { readGroups, readMachines } from "../../../../../src/backend/cloud/read-machines.ts";
import { groupName, toTags } from "../../../../../src/backend/cloud/tags.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { creationDirectory, creationFiles } from "../../../../../src/store/creation-folder.ts";
import {
  makePrivateFolder,
  writePrivateFile,
} from "../../../../../src/system/files/private-file.ts";
import { outcomeText } from "../../../../support/outcome-text.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const unasked = (): Promise<never> => Promise.reject(new Error("nobody should ask this"));
const failed = async (): Promise<never> => Promise.reject(new ClusterError("not-permitted", "No."));

interface Sketch {
  readonly id: string;
  readonly rules?: readonly IpPermission[];
  readonly state?: "running" | "pending" | "stopped";
  readonly expiresAt?: string;
}

/** Facts about clusters of one machine each. */
function factsOf(sketches: readonly Sketch[], changes: Partial<CloudFacts> = {}): CloudFacts {
  const described = sketches.map(({ id, rules = [], state = "running", expiresAt }, index) => {
    const tags = {
      clusterId: id,
      creationId: creationIdOf(id),
      ...(expiresAt !== undefined && { expiresAt }),
    };
    const GroupId = `sg-0000000${index}`;
    const machineTags = { ...tags, role: "master", variant: "oss", sshUser: "admin" };
    return {
      group: {
        GroupId,
        GroupName: groupName(id),
        Tags: toTags("x", tags, []),
        IpPermissions: [...rules],
      },
      instance: {
        InstanceId: `i-0000000${index}`,
        State: { Name: state },
        LaunchTime: new Date("2025-12-31T21:00:00Z"),
        SecurityGroups: [{ GroupId, GroupName: groupName(id) }],
        Tags: toTags("x", machineTags, []),
      },
    };
  });
  return {
    api: async () => ({ now: () => Date.parse("2026-01-01T00:00:00Z") }) as never,
    inTime: unasked,
    defaultGroups: async () => [],
    instances: async () => readMachines(described.map(({ instance }) => instance)),
    groups: async () => readGroups(described.map(({ group }) => group)),
    subnets: unasked,
    image: unasked,
    instanceType: unasked,
    zones: unasked,
    address: async () => "192.0.2.7",
    ...changes,
  };
}

const creationIdOf = (id: string): string => Buffer.from(id.padEnd(8, "_")).toString("hex");
const ssh = (CidrIp: string): IpPermission => ({
  IpProtocol: "tcp",
  FromPort: 22,
  ToPort: 22,
  IpRanges: [{ CidrIp }],
});

/** Runs the check on a machine that has the keys of these clusters. */
async function admitted(facts: CloudFacts, keys: readonly string[]): Promise<string> {
  await using folder = await scratchFolder();
  for (const id of keys) {
    const root = `${folder.path}/cluster-e2e/cloud/us-west-2`;
    const directory = creationDirectory(root, id, creationIdOf(id));
    await makePrivateFolder(directory);
    await writePrivateFile(creationFiles(directory).privateKey, "a key\n");
  }
  const environment = { XDG_STATE_HOME: folder.path, HOME: folder.path };
  const check = adminAddressCheck(facts, { region: "us-west-2", environment });
  return outcomeText(await check.run(neverAborted));
}

const seen = "This computer's public address is 192.0.2.7";

test("clusters that do not let this computer in are named, with the command that changes it", async () => {
  const away = { rules: [ssh("198.51.100.0/24")] };
  const facts = factsOf([
    { id: "one", ...away },
    { id: "two" },
    { id: "open", rules: [ssh("192.0.2.0/24")] },
  ]);
  const closedTo = "which is not allowed to reach";
  expect(await admitted(facts, ["one", "open"])).toBe(
    `warn: ${seen}, ${closedTo} cluster one (security group sg-00000000: 198.51.100.0/24). → Allow it: cluster-cloud admit --cloud-region us-west-2 -c one`,
  );
  expect(await admitted(facts, ["one", "two", "open"])).toBe(
    `warn: ${seen}, ${closedTo} clusters one (security group sg-00000000: 198.51.100.0/24); two (security group sg-00000001: none). → Allow it: cluster-cloud admit --cloud-region us-west-2 -c one; cluster-cloud admit --cloud-region us-west-2 -c two`,
  );
});

test("clusters without a key here, or without a living machine, do not count", async () => {
  const facts = factsOf([{ id: "theirs" }, { id: "ended", state: "stopped" }]);
  expect(await admitted(facts, ["ended"])).toBe(`pass: ${seen}`);
});

test.each([
  ["the port 22", true, ssh("192.0.2.0/24")],
  [
    "ports around 22",
    true,
    { IpProtocol: "tcp", FromPort: 20, ToPort: 30, IpRanges: [{ CidrIp: "192.0.2.7/32" }] },
  ],
  ["all TCP ports", true, { IpProtocol: "tcp", IpRanges: [{ CidrIp: "192.0.2.7/32" }] }],
  ["all traffic", true, { IpProtocol: "-1", IpRanges: [{ CidrIp: "192.0.2.7/32" }] }],
  [
    "lower ports",
    false,
    { IpProtocol: "tcp", FromPort: 1, ToPort: 21, IpRanges: [{ CidrIp: "192.0.2.7/32" }] },
  ],
  [
    "higher ports",
    false,
    { IpProtocol: "tcp", FromPort: 23, ToPort: 99, IpRanges: [{ CidrIp: "192.0.2.7/32" }] },
  ],
  [
    "UDP",
    false,
    { IpProtocol: "udp", FromPort: 22, ToPort: 22, IpRanges: [{ CidrIp: "192.0.2.7/32" }] },
  ],
  [
    "nobody, by a broken range",
    false,
    { IpProtocol: "-1", IpRanges: [{ CidrIp: "192.0.2.7/99" }] },
  ],
])("a rule for %s lets this computer log in: %p", async (_, isOpen, rule) => {
  const text = await admitted(factsOf([{ id: "one", rules: [rule], state: "pending" }]), ["one"]);
  if (isOpen) expect(text).toBe(`pass: ${seen}, and the clusters created here allow it`);
  else expect(text).toStartWith("warn: ");
});

test.each(["instances", "groups"] as const)(
  "without the permission to see %s, the address is shown alone",
  async (fact) => {
    const text = await admitted(factsOf([{ id: "one" }], { [fact]: failed }), ["one"]);
    expect(text).toBe(`pass: ${seen}; it is not known whether clusters allow it`);
  },
);

test.each([
  ["nothing", [], "pass: "],
  [
    "one thing",
    ["a"],
    "warn: Expired clusters have left machine i-00000000 (cluster a, which ended 2025-12-31 23:00 UTC (1 h ago)).",
  ],
  ["two things", ["a", "b"], "warn: Expired clusters have left machine i-00000000"],
])("if ended clusters have left %s", async (_, ids, text) => {
  const facts = factsOf(ids.map((id) => ({ id, expiresAt: "2025-12-31T23:00:00Z" })));
  const told = outcomeText(await leftoversCheck(facts, "us-west-2").run(neverAborted));
  expect(told).toStartWith(text);
  if (ids.length === 1) expect(told).toContain(" removes it: ");
  if (ids.length === 2) expect(told).toContain(" removes them: ");
});

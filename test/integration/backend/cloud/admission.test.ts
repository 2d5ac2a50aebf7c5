/** Admission: who may reach a cluster. Only the rules of its own security group change. */
import type { Backend } from "../../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import {
  AuthorizeSecurityGroupIngressCommand,
  CreateSecurityGroupCommand,
  EC2Client,
  RevokeSecurityGroupIngressCommand,
  type TagSpecification,
} from "@aws-sdk/client-ec2";
import { join } from "node:path";
import {
  admitRange as admit,
  listAdmittedRanges,
  removeRange as remove,
} from "../../../support/admission.ts";
import type { LocalCloud } from "../../../local-cloud/local-cloud.ts";
import { type CloudFixture, openFixture, region } from "../../../support/cloud-fixture.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const office = "192.0.2.0/24";

/** Two clusters that only the office's range may reach. */
async function openClusters(): Promise<CloudFixture & { readonly backend: Backend<unknown> }> {
  const fixture = await openFixture({});
  const backend = await fixture.open(region);
  for (const id of ["nightly", "weekly"]) {
    const options = { instanceType: "m5.large", customTags: [], adminCidrs: [office] };
    const request = fixture.request(id, {
      options,
      counts: { master: 1, agent: 0, public_agent: 0 },
    });
    await fixture.create(backend, request, neverAborted);
  }
  return { ...fixture, backend };
}

/** The rules of each group as `source port`. */
const rulesOf = (cloud: LocalCloud): Readonly<Record<string, readonly string[]>> =>
  Object.fromEntries(
    cloud
      .groups()
      .map(({ groupName, rules }) => [
        groupName.replace(/^cluster-e2e-/, ""),
        rules
          .map(
            ({ source, fromPort }) =>
              `${"cidr" in source ? source.cidr : "other"} ${fromPort ?? "all"}`,
          )
          .toSorted(),
      ]),
  );

const opened = (range: string): readonly string[] =>
  ["22", "443", "80"].map((port) => `${range} ${port}`);

// Shows R117.
test("admits this computer's address or a given range to the same ports as the others, on one cluster only", async () => {
  await using clusters = await openClusters();
  const { backend, cloud } = clusters;
  const before = rulesOf(cloud);
  expect(await admit(backend)).toBe("127.0.0.1/32");
  expect(await admit(backend, "198.51.100.7")).toBe("198.51.100.7/32");
  const name = Object.keys(before).find((each) => each.includes("nightly"))!;
  const expected = [
    ...opened("127.0.0.1/32"),
    ...opened(office),
    ...opened("198.51.100.7/32"),
    "other all",
  ];
  expect(rulesOf(cloud)).toEqual({ ...before, [name]: expected.toSorted() });
  const ports = ["22", "80", "443"];
  expect(await listAdmittedRanges(backend)).toEqual([
    { range: office, ports },
    { range: "127.0.0.1/32", ports },
    { range: "198.51.100.7/32", ports },
  ]);
  await admit(backend, "198.51.100.7");
  await remove(backend, "127.0.0.1");
  await remove(backend, "198.51.100.7/32");
  expect(rulesOf(cloud)).toEqual(before);
});

test("adds the missing rules of a range, and opens the platform's ports for the first range", async () => {
  await using clusters = await openClusters();
  const { backend, cloud } = clusters;
  const { groupId: GroupId } = cloud
    .groups()
    .find(({ groupName }) => groupName.includes("nightly"))!;
  const ssh = {
    IpProtocol: "tcp",
    FromPort: 22,
    ToPort: 22,
    IpRanges: [{ CidrIp: "198.51.100.7/32" }],
  };
  await clientOf(cloud).send(
    new AuthorizeSecurityGroupIngressCommand({ GroupId, IpPermissions: [ssh] }),
  );
  await Promise.all([admit(backend, "198.51.100.7"), admit(backend, "198.51.100.7")]);
  await remove(backend, office);
  await remove(backend, "198.51.100.7");
  expect(await listAdmittedRanges(backend)).toEqual([]);
  await admit(backend, office);
  const [{ range, ports } = { range: "", ports: [] }] = await listAdmittedRanges(backend);
  expect({ range, ports }).toEqual({
    range: office,
    ports: expect.arrayContaining(["22", "80", "443"]),
  });
});

test("an invalid range, one that is not admitted, or an accidental 0.0.0.0/0 is rejected before anything changes", async () => {
  await using clusters = await openClusters();
  const { backend, cloud } = clusters;
  const before = rulesOf(cloud);
  const refusals = [
    [
      async () => admit(backend, "nowhere"),
      '"nowhere" is not an address range such as 192.0.2.0/24.',
    ],
    [
      async () => admit(backend, "192.0.2.7/0"),
      '"192.0.2.7/0" contains every address: pass a longer prefix, such as /32 for one address, or 0.0.0.0/0 to admit everyone.',
    ],
    [
      async () => remove(backend, "192.0.2.0/25"),
      '192.0.2.0/25 is not admitted to cluster "nightly".',
    ],
  ] as const;
  for (const [refused, message] of refusals) {
    expect(await failureOf(refused())).toMatchObject({ id: "bad-usage", message });
  }
  expect(rulesOf(cloud)).toEqual(before);
  expect(await admit(backend, "0.0.0.0/0")).toBe("0.0.0.0/0");
});

test("a removal is asked for again while the API doesn't answer, and while somebody else removes one of its rules", async () => {
  await using clusters = await openClusters();
  const { backend, cloud } = clusters;
  const action = "RevokeSecurityGroupIngress";
  await admit(backend, "198.51.100.7");
  const before = rulesOf(cloud);
  cloud.faults.add({ action, when: "before", times: 1, code: "Unavailable" });
  cloud.faults.add({ action, when: "before", times: 1, lost: true });
  cloud.faults.add({ action, when: "after", times: 1, lost: true });
  await remove(backend, office);
  const name = Object.keys(before).find((each) => each.includes("nightly"))!;
  const remaining = before[name]!.filter((rule) => !rule.startsWith(office));
  expect(rulesOf(cloud)).toEqual({ ...before, [name]: remaining });
  cloud.faults.add({ action, when: "before", times: 1, code: "InvalidPermission.NotFound" });
  await remove(backend, "198.51.100.7");
  expect(rulesOf(cloud)[name]).toEqual(["other all"]);
});

test("a group with copied tags is not changed", async () => {
  await using clusters = await openClusters();
  const { backend, cloud } = clusters;
  const own = cloud.groups().find(({ groupName }) => groupName.includes("nightly"))!;
  const Tags = Object.entries(own.tags).map(([Key, Value]) => ({ Key, Value }));
  const TagSpecifications: TagSpecification[] = [{ ResourceType: "security-group", Tags }];
  await clientOf(cloud).send(
    new CreateSecurityGroupCommand({ GroupName: "copy", Description: "x", TagSpecifications }),
  );
  await admit(backend);
  expect(rulesOf(cloud)["copy"]).toEqual([]);
});

test("a group without the rule for its own nodes counts as being set up; a missing permission is named", async () => {
  await using clusters = await openClusters();
  const { backend, cloud } = clusters;
  cloud.faults.add({
    action: "AuthorizeSecurityGroupIngress",
    when: "before",
    times: 1,
    code: "UnauthorizedOperation",
  });
  expect((await failureOf(admit(backend))).id).toBe("not-permitted");
  const { groupId: GroupId } = cloud
    .groups()
    .find(({ groupName }) => groupName.includes("nightly"))!;
  const IpPermissions = [{ IpProtocol: "-1", UserIdGroupPairs: [{ GroupId }] }];
  await clientOf(cloud).send(new RevokeSecurityGroupIngressCommand({ GroupId, IpPermissions }));
  const failure = await failureOf(admit(backend));
  expect(failure).toMatchObject({ id: "cloud-failed", transient: true });
  expect(failure.message).toContain("still being set up");
});

const program = join(import.meta.dir, "..", "..", "..", "..", "src", "bin", "cluster-cloud.ts");

test("the command admits, lists and removes ranges", async () => {
  await using clusters = await openClusters();
  const { environment } = clusters.runtime;
  const run = async (...words: readonly string[]): Promise<string> => {
    const child = Bun.spawn([process.execPath, program, "admit", "-c", "nightly", ...words], {
      env: { PATH: process.env["PATH"], ...environment },
      stdout: "pipe",
      stderr: "pipe",
    });
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    return `${await child.exited} ${stdout}${stderr}`;
  };
  expect(await run()).toBe("0 127.0.0.1/32\n");
  expect(await run("--list")).toBe(
    `0 CIDR          PORTS\n${office}  22, 80, 443\n127.0.0.1/32  22, 80, 443\n`,
  );
  expect(await run("--remove", "127.0.0.1")).toBe("0 127.0.0.1/32\n");
  expect(await run("--list", "--output", "json")).not.toContain("127.0.0.1");
  expect(await run("--list", "--remove", office)).toContain(
    "--list and --remove: cannot be combined",
  );
});

const clientOf = ({ endpoint, accessKeyId, secretAccessKey }: LocalCloud): EC2Client =>
  new EC2Client({ region, endpoint, credentials: { accessKeyId, secretAccessKey } });

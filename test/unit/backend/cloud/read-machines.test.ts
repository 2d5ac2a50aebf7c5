import type { Instance } from "@aws-sdk/client-ec2";
import { expect, test } from "bun:test";
import { assertIdIsFree } from "../../../../src/backend/cloud/launch/network.ts";
import { readGroups, readMachines } from "../../../../src/backend/cloud/read-machines.ts";
import { toClusters } from "../../../../src/backend/cloud/records.ts";
import { findLeftovers } from "../../../../src/backend/cloud/remove-expired.ts";
import { type TagValues, tagNames, toTags } from "../../../../src/backend/cloud/tags.ts";
import { renderSshConfig } from "../../../../src/ssh/openssh-files.ts";
import { hostileTexts, textsIn, unprintable } from "../../../support/hostile-text.ts";

const creationId = "0123456789abcdef";
const tags = {
  clusterId: "default",
  creationId,
  role: "master",
  indexBase: "0",
  counts: "master=1 agent=2 public_agent=0",
  variant: "oss",
  webUi: "https",
  distribution: "debian-12",
  sshUser: "admin",
  expiresAt: "2026-01-01T02:00:00.000Z",
} as const;

function instance(changed: TagValues = {}, more: Partial<Instance> = {}): Instance {
  return {
    InstanceId: "i-0123456789abcdef0",
    AmiLaunchIndex: 0,
    InstanceType: "m5.large",
    LaunchTime: new Date("2026-01-01T00:00:00Z"),
    State: { Name: "running" },
    PublicIpAddress: "192.0.2.1",
    PrivateIpAddress: "172.31.0.1",
    SecurityGroups: [{ GroupId: "sg-0123456789abcdef0", GroupName: "cluster-e2e-default" }],
    Tags: toTags("x", { ...tags, ...changed }, []),
    ...more,
  };
}

const without = (name: keyof typeof tags): Partial<Instance> => ({
  Tags: instance().Tags!.filter(({ Key }) => Key !== tagNames[name]),
});

const refusal = (one: Instance): unknown => {
  const { machines, foreignResources } = readMachines([one]);
  return machines.length === 0
    ? foreignResources.map(({ what, why }) => `${what}: ${why}`).join()
    : machines;
};

test.each([
  ["its tag cluster-e2e:creation-id is malformed", instance({ creationId: "x/../../../.ssh" })],
  [
    "its tag cluster-e2e:ssh-user is malformed",
    instance({ sshUser: "a\n  ProxyCommand touch /tmp/x" }),
  ],
  ["its tag cluster-e2e:cluster-id is malformed", instance({ clusterId: "../default" })],
  ["its tag cluster-e2e:role is malformed", instance({ role: "president" })],
  ["its tag cluster-e2e:index-base is malformed", instance({ indexBase: "-1" })],
  ["its tag cluster-e2e:counts is malformed", instance({ counts: "master=1e9" })],
  ["its tag cluster-e2e:web-ui is malformed", instance({ webUi: "javascript" })],
  ["its tag cluster-e2e:expires-at is malformed", instance({ expiresAt: "tomorrow" })],
  ["its tag cluster-e2e:distribution is malformed", instance({ distribution: "\u001B[2J" })],
  ["its tag cluster-e2e:ssh-user is missing", instance({}, without("sshUser"))],
  ["its number is too high for a node", instance({ indexBase: "999" }, { AmiLaunchIndex: 1 })],
  ["its addresses are malformed", instance({}, { PublicIpAddress: "192.0.2.1 -oProxyCommand=x" })],
  ["its addresses are malformed", instance({}, { PrivateIpAddress: "172.31.0" })],
])("an instance is nobody's where %s", (why, one) => {
  expect(refusal(one)).toBe(`instance i-0123456789abcdef0: ${why}`);
});

test("an instance without the tags that may be missing is ours", () => {
  const optional = ["indexBase", "counts", "webUi", "distribution", "expiresAt"] as const;
  for (const name of optional)
    expect(readMachines([instance({}, without(name))]).machines.map(({ index }) => index)).toEqual([
      0,
    ]);
  const { AmiLaunchIndex: _, ...unnumbered } = instance();
  expect(readMachines([unnumbered]).machines.map(({ index }) => index)).toEqual([0]);
});

test("an ended instance with broken tags is not worth a word", () => {
  expect(readMachines([instance({ role: "x" }, { State: { Name: "terminated" } })])).toEqual({
    machines: [],
    rivals: [],
    foreignResources: [],
  });
});

test.each([
  ["a younger one in the cluster's group", { LaunchTime: new Date("2026-01-01T00:30:00Z") }],
  [
    "an older one outside of it",
    { LaunchTime: new Date("2020-01-01T00:00:00Z"), SecurityGroups: [] },
  ],
])(
  "of two that say they are the same node, the elder in the cluster's group is, and not %s",
  (_, more) => {
    const impostor = instance({}, { InstanceId: "i-00000000000000bad", ...more });
    const { machines, rivals, foreignResources } = readMachines([impostor, instance()]);
    expect([machines, rivals].map((each) => each.map(({ id }) => id))).toEqual([
      ["i-0123456789abcdef0"],
      ["i-00000000000000bad"],
    ]);
    expect(foreignResources).toEqual([
      {
        what: "instance i-00000000000000bad",
        why: "its tags say that it is master_0, but i-0123456789abcdef0 is that node",
      },
    ]);
  },
);

test("of two of the same age, the one with the smaller id is the node, in whatever order they are described", () => {
  const alike = [instance(), instance({}, { InstanceId: "i-00000000000000bad" })];
  for (const seen of [alike, alike.toReversed()])
    expect(readMachines(seen).machines.map(({ id }) => id)).toEqual(["i-00000000000000bad"]);
});

const own = instance();
test.each([
  [
    "that this computer launched is a node",
    own.InstanceId!,
    "running",
    { nodes: [own.InstanceId], named: [] },
  ],
  [
    "that it did not launch is only named",
    "i-00000000000000bad",
    "running",
    { nodes: [], named: [own.InstanceId] },
  ],
  [
    "that it did not launch and that has ended is not",
    "i-00000000000000bad",
    "terminated",
    { nodes: [], named: [] },
  ],
] as const)(
  "a machine with the tags of this computer's cluster %s",
  (_, launchedId, state, { nodes, named }) => {
    const launches = new Map([
      [creationId, { machineIds: new Set([launchedId]), groupIds: new Set<string>() }],
    ]);
    const { machines, foreignResources } = readMachines(
      [{ ...own, State: { Name: state } }],
      launches,
    );
    expect(machines.map(({ id }) => id)).toEqual(nodes.slice() as string[]);
    const why = "its tags name a cluster of this computer, which did not launch it";
    expect(foreignResources).toEqual(named.map((id) => ({ what: `instance ${id}`, why })));
  },
);

test("a broken instance neither takes an id nor is ended as a leftover", () => {
  const broken = readMachines([instance({ creationId: "x" }), instance({ counts: "many" })]);
  const wanted = { clusterId: "default", region: "us-west-2", nowMs: 0, leaving: [] };
  expect(() => assertIdIsFree(broken, wanted)).not.toThrow();
  expect(() => assertIdIsFree(readMachines([instance()]), wanted)).toThrow("exists");
  expect(findLeftovers({ ...broken, groups: [] }, Infinity).machines).toEqual([]);
});

test("tags alone, without the cluster's security group, are not enough to be ended as a leftover", () => {
  const foreign = instance(
    {},
    { SecurityGroups: [{ GroupId: "sg-0123456789abcdef1", GroupName: "production" }] },
  );
  expect(findLeftovers({ ...readMachines([foreign]), groups: [] }, Infinity).machines).toEqual([]);
  expect(
    findLeftovers({ ...readMachines([instance()]), groups: [] }, Infinity).machines.length,
  ).toBe(1);
});

test("a security group is a cluster's by tags and name alike", () => {
  const Tags = toTags("x", { clusterId: "default", creationId, expiresAt: tags.expiresAt }, []);
  const group = { GroupId: "sg-0123456789abcdef0", GroupName: "cluster-e2e-default", Tags };
  expect(readGroups([group]).groups).toMatchObject([
    { id: "sg-0123456789abcdef0", clusterId: "default", creationId },
  ]);
  const foreign = readGroups([{ ...group, GroupName: "production" }]);
  expect([foreign.groups.length, foreign.foreignResources[0]?.why]).toEqual([
    0,
    "its name is not the name of its cluster's group",
  ]);
  expect(readGroups([{ ...group, GroupId: "sg-1 " }]).foreignResources).toEqual([
    { what: "security group sg-1", why: "its id is malformed" },
  ]);
  const broken = readGroups([
    { ...group, Tags: toTags("x", { clusterId: "default", creationId: ".." }, []) },
  ]);
  expect([broken.groups.length, broken.foreignResources[0]?.why]).toEqual([
    0,
    "its tag cluster-e2e:creation-id is malformed",
  ]);
});

test("whatever tags and addresses say, no record leaves its root, and ssh is given nothing else than it is meant to be", () => {
  const files = { identityFile: "/key", knownHostsFile: "/known_hosts" };
  const lines = renderSshConfig(
    toClusters([instance()], { region: "us-west-2", root: "/" })[0]!.nodes,
    files,
  );
  const names = Object.keys(tags) as (keyof typeof tags)[];
  hostileTexts(5, 1200).forEach((text, index) => {
    const changed = [
      instance({ [names[index % names.length]!]: text }),
      instance({}, { PublicIpAddress: text }),
      instance(
        {},
        { StateReason: { Message: text }, StateTransitionReason: text, State: { Name: "stopped" } },
      ),
      instance({}, { InstanceId: text }),
    ];
    for (const one of changed) {
      for (const foreignResource of readMachines([one]).foreignResources)
        expect(`${foreignResource.what} ${foreignResource.why}`).toMatch(/^[\x20-\x7E]{1,600}$/);
      for (const cluster of toClusters([one], { region: "us-west-2", root: "/root/of/it" })) {
        expect(cluster.directory).toMatch(/^\/root\/of\/it\/[\w.-]+-[0-9a-f]{16}$/);
        for (const each of textsIn(cluster)) expect(each).not.toMatch(unprintable);
        expect(renderSshConfig(cluster.nodes, files).split("\n").length).toBeLessThanOrEqual(
          lines.split("\n").length,
        );
      }
    }
  });
});

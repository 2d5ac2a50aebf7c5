import type { Instance, InstanceStateName } from "@aws-sdk/client-ec2";
import { expect, test } from "bun:test";
import { readMachines } from "../../../../src/backend/cloud/read-machines.ts";
import { clustersOf, pickCluster, toClusters } from "../../../../src/backend/cloud/records.ts";
import { toTags } from "../../../../src/backend/cloud/tags.ts";
import { nodeReference } from "../../../../src/model/cluster-record.ts";

const place = { region: "us-west-2", root: "/state/cloud/us-west-2" };

interface Sketch {
  readonly role?: string;
  readonly launchIndex?: number;
  readonly state?: InstanceStateName;
  readonly clusterId?: string;
  readonly creationId?: string;
  readonly launchTime?: string;
  readonly counts?: string;
}

/** Picks the cluster `default` on a computer with the keys of these creations. */
function pick(instances: readonly Instance[], here: readonly string[] = []): string | undefined {
  const { machines } = readMachines(instances);
  return pickCluster({ machines, clusters: clustersOf(machines, place) }, "default", new Set(here))
    ?.creationId;
}

const made = { count: 0 };

function instance(sketch: Sketch): Instance {
  made.count += 1;
  const id = made.count;
  const tags = {
    clusterId: sketch.clusterId ?? "default",
    creationId: sketch.creationId ?? "00000000000000c1",
    role: sketch.role ?? "master",
    indexBase: "0",
    counts: sketch.counts ?? "master=1 agent=2 public_agent=0",
    variant: "oss",
    webUi: "https",
    platform: "etcd 2379 3.5",
    distribution: "debian-12",
    sshUser: "admin",
    expiresAt: "2026-01-01T02:00:00.000Z",
  };
  return {
    InstanceId: `i-${String(id).padStart(17, "0")}`,
    AmiLaunchIndex: sketch.launchIndex ?? 0,
    InstanceType: "m5.large",
    LaunchTime: new Date(sketch.launchTime ?? "2026-01-01T00:00:00Z"),
    State: { Name: sketch.state ?? "running" },
    PublicIpAddress: "192.0.2.1",
    PrivateIpAddress: "172.31.0.1",
    Tags: toTags("x", tags, []),
  };
}

test("reads a cluster back from its tags", () => {
  const [cluster] = toClusters(
    [
      instance({ role: "agent", launchIndex: 1 }),
      instance({ role: "agent" }),
      instance({ role: "master" }),
    ],
    place,
  );
  expect(cluster).toMatchObject({
    id: "default",
    creationId: "00000000000000c1",
    backend: "cloud",
    region: "us-west-2",
    variant: "oss",
    webUi: "https",
    platform: "etcd 2379 3.5",
    distribution: "debian-12",
    state: "running",
    createdAt: new Date("2026-01-01T00:00:00Z"),
    expiresAt: new Date("2026-01-01T02:00:00Z"),
    requested: { master: 1, agent: 2, public_agent: 0 },
    maximumCost: 0.72,
    directory: "/state/cloud/us-west-2/default-00000000000000c1",
  });
  expect(cluster?.nodes.map(nodeReference)).toEqual(["master_0", "agent_0", "agent_1"]);
  expect(cluster?.nodes[0]).toMatchObject({
    state: "running",
    publicAddress: "192.0.2.1",
    privateAddress: "172.31.0.1",
    ssh: { host: "192.0.2.1", port: 22, user: "admin" },
    web: { host: "192.0.2.1", httpPort: 80, httpsPort: 443 },
  });
});

test("a web UI on a port of its own is reached there", () => {
  const one = instance({});
  const tags = one.Tags!.map((tag) =>
    tag.Key === "cluster-e2e:web-ui" ? { ...tag, Value: "https:9443/ui" } : tag,
  );
  const [cluster] = toClusters([{ ...one, Tags: tags }], place);
  expect(cluster?.nodes[0]?.web).toEqual({ host: "192.0.2.1", httpPort: 80, httpsPort: 9443 });
});

const all = { counts: "master=1 agent=1 public_agent=0" };

test.each([
  [["running", "running"], "running"],
  [["running", "pending"], "starting"],
  [["running", "terminated"], "incomplete"],
  [["running", "shutting-down"], "incomplete"],
  [["running", "stopped"], "incomplete"],
  [["shutting-down", "terminated"], "ending"],
] as const)("machines that are %p make a cluster that is %p", ([master, agent], state) => {
  const instances = [
    instance({ ...all, state: master }),
    instance({ ...all, role: "agent", state: agent }),
  ];
  expect(toClusters(instances, place)[0]?.state).toBe(state);
});

test("a half-made cluster is shown as such", () => {
  expect(toClusters([instance({})], place)[0]?.state).toBe("incomplete");
});

test("keeps an ended node of a living cluster, with the cloud's reason, under its old name", () => {
  const gone = {
    ...instance({ role: "agent", state: "terminated" }),
    StateReason: { Message: "powered off" },
  };
  const agent = instance({ role: "agent", launchIndex: 1, state: "stopping" });
  const ending = { ...agent, StateTransitionReason: "User initiated" };
  const master = { ...instance({}), StateTransitionReason: "User initiated" };
  const [cluster] = toClusters([master, gone, ending], place);
  expect(cluster?.nodes.map((node) => [nodeReference(node), node.state, node.stateReason])).toEqual(
    [
      ["master_0", "running", undefined],
      ["agent_0", "ended", "powered off"],
      ["agent_1", "ending", "User initiated"],
    ],
  );
});

test("a cluster whose tags give no deadline ends two hours after its launch", () => {
  const one = instance({});
  const Tags = one.Tags!.filter(({ Key }) => Key !== "cluster-e2e:expires-at");
  expect(toClusters([{ ...one, Tags }], place)[0]?.expiresAt).toEqual(
    new Date("2026-01-01T02:00:00Z"),
  );
});

test("clusters are sorted by their names, and those of one name by their age", () => {
  const SecurityGroups = [{ GroupId: "sg-00000001", GroupName: "cluster-e2e-default" }];
  const instances = [
    {
      ...instance({ creationId: "bbbbbbbbbbbbbbbb", launchTime: "2026-01-01T01:00:00Z" }),
      SecurityGroups,
    },
    instance({ creationId: "cccccccccccccccc", launchTime: "2026-01-01T00:30:00Z" }),
    instance({
      creationId: "aaaaaaaaaaaaaaaa",
      clusterId: "a",
      launchTime: "2026-01-01T01:30:00Z",
    }),
  ];
  const ids = ["aaaaaaaaaaaaaaaa", "cccccccccccccccc", "bbbbbbbbbbbbbbbb"];
  for (const seen of [instances, instances.toReversed()])
    expect(toClusters(seen, place).map(({ creationId }) => creationId)).toEqual(ids);
});

test("knows no cluster whose machines have all ended, nor machines with other tags than ours", () => {
  const foreign = instance({ role: "president" });
  expect(toClusters([instance({ state: "terminated" }), foreign], place)).toEqual([]);
});

test("of two clusters with one id, the one that is not on its way out is meant", () => {
  const instances = [
    instance({ creationId: "aaaaaaaaaaaaaaaa", state: "shutting-down" }),
    instance({ creationId: "bbbbbbbbbbbbbbbb", launchTime: "2026-01-01T01:00:00Z" }),
  ];
  expect(pick(instances)).toBe("bbbbbbbbbbbbbbbb");
});

test("of two that are ending, the younger is meant", () => {
  const instances = [
    instance({
      creationId: "aaaaaaaaaaaaaaaa",
      state: "shutting-down",
      launchTime: "2026-01-01T01:00:00Z",
    }),
    instance({
      creationId: "bbbbbbbbbbbbbbbb",
      state: "shutting-down",
      launchTime: "2026-01-01T00:00:00Z",
    }),
  ];
  expect(pick(instances)).toBe("aaaaaaaaaaaaaaaa");
});

test("of two that both live, the elder is meant: the later creation yields", () => {
  const instances = [
    instance({ creationId: "aaaaaaaaaaaaaaaa", launchTime: "2026-01-01T01:00:00Z" }),
    instance({ creationId: "bbbbbbbbbbbbbbbb", launchTime: "2026-01-01T00:00:00Z" }),
  ];
  expect(pick(instances)).toBe("bbbbbbbbbbbbbbbb");
});

test.each([
  ["one in its security group comes before an elder outside of it", [], "bbbbbbbbbbbbbbbb", {}],
  ["one whose key is here comes before both", ["cccccccccccccccc"], "cccccccccccccccc", {}],
  [
    "one whose key is here but that is ending does not",
    ["cccccccccccccccc"],
    "bbbbbbbbbbbbbbbb",
    { state: "shutting-down" },
  ],
] as const)("of several that live, %s", (_, here, expected, changes) => {
  const grouped = {
    SecurityGroups: [{ GroupId: "sg-00000001", GroupName: "cluster-e2e-default" }],
  };
  const instances = [
    instance({ creationId: "aaaaaaaaaaaaaaaa", launchTime: "2026-01-01T00:00:00Z" }),
    {
      ...instance({ creationId: "bbbbbbbbbbbbbbbb", launchTime: "2026-01-01T00:10:00Z" }),
      ...grouped,
    },
    instance({ creationId: "cccccccccccccccc", launchTime: "2026-01-01T00:20:00Z", ...changes }),
  ];
  expect(pick(instances, here)).toBe(expected);
});

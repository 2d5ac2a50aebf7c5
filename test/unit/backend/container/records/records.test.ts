import { expect, test } from "bun:test";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { passageThrough } from "../../../../../src/backend/container/engine/passage.ts";
import { labelNames } from "../../../../../src/backend/container/records/labels.ts";
import { readContainers } from "../../../../../src/backend/container/records/read-containers.ts";
import { toClusters } from "../../../../../src/backend/container/records/records.ts";
import { nodeReference } from "../../../../../src/model/cluster-record.ts";

interface Sketch {
  readonly role?: string;
  readonly index?: string;
  readonly status?: string;
  readonly exitCode?: number;
  readonly outOfMemory?: boolean;
  readonly error?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly address?: string;
  readonly creationId?: string;
}

const first = "00000000000000c1";
const second = "00000000000000c2";

const shared = (creationId: string) => ({
  [labelNames.clusterId]: "default",
  [labelNames.creationId]: creationId,
  [labelNames.counts]: "master=1 agent=1 public_agent=0",
  [labelNames.variant]: "enterprise",
  [labelNames.distribution]: "debian-12",
  [labelNames.reach]: "direct",
});

const bridge = "br-0123456789ab";
const interfaces = new Set(["lo", bridge]);
const place = { root: "/state", passageTo: passageThrough(engineKinds.docker, {}) };

/** As Docker describes it. */
function container(sketch: Sketch) {
  const {
    role = "master",
    index = "0",
    status = "running",
    address = "172.18.0.2",
    creationId = first,
  } = sketch;
  return {
    Id: Buffer.from(`${creationId}${role}${index}`).toString("hex").padEnd(64, "0").slice(-64),
    Name: `/cluster-e2e-default-${role}_${index}`,
    Created: "2026-01-01T00:00:00.5Z",
    State: {
      Status: status,
      ExitCode: sketch.exitCode ?? 0,
      OOMKilled: sketch.outOfMemory ?? false,
      Error: sketch.error ?? "",
    },
    Config: {
      Labels: {
        ...shared(creationId),
        [labelNames.role]: role,
        [labelNames.index]: index,
        ...sketch.labels,
      },
    },
    NetworkSettings: {
      Networks: { [`cluster-e2e-default-${creationId}`]: { IPAddress: address } },
    },
  };
}

const network = (creationId: string) => ({
  id: "0123456789abcdef".repeat(4),
  name: `cluster-e2e-default-${creationId}`,
  labels: shared(creationId),
  bridge,
});

const inventory = (containers: readonly object[], abandoned: readonly string[] = []) => {
  const networks = [network(first), network(second)].filter(({ name }) =>
    containers.some((one) => JSON.stringify(one).includes(name)),
  );
  return { ...readContainers({ containers, networks, interfaces }), abandoned: new Set(abandoned) };
};

const read = (...containers: readonly object[]) =>
  toClusters(inventory(containers), { ...place, root: "/state/container" });

test("reads a cluster back from labels, its nodes in order, at their own addresses", () => {
  const [cluster, ...others] = read(
    container({ role: "agent", address: "172.18.0.3" }),
    container({}),
  );
  expect(others).toEqual([]);
  expect(cluster).toMatchObject({
    id: "default",
    creationId: first,
    backend: "container",
    variant: "enterprise",
    distribution: "debian-12",
    state: "running",
    requested: { master: 1, agent: 1, public_agent: 0 },
    createdAt: new Date("2026-01-01T00:00:00.500Z"),
    expiresAt: undefined,
    directory: "/state/container/default-00000000000000c1",
  });
  expect(cluster!.nodes.map(nodeReference)).toEqual(["master_0", "agent_0"]);
  expect(cluster!.nodes[1]).toMatchObject({
    publicAddress: "172.18.0.3",
    privateAddress: "172.18.0.3",
    ssh: { host: "172.18.0.3", port: 22, user: "root" },
    web: { host: "172.18.0.3", httpPort: 80, httpsPort: 443 },
  });
});

test("the end of a cluster with a lifetime is on its network; a malformed one makes the network somebody else's", () => {
  const endOf = (expiresAt: string) => {
    const known = {
      ...network(first),
      labels: { ...shared(first), [labelNames.expiresAt]: expiresAt },
    };
    const reading = readContainers({ containers: [container({})], networks: [known] });
    return toClusters({ ...reading, abandoned: new Set() }, place).map(
      (cluster) => cluster.expiresAt,
    );
  };
  expect(endOf("2026-01-01T04:00:00.000Z")).toEqual([new Date("2026-01-01T04:00:00Z")]);
  expect(endOf("soon")).toEqual([]);
});

test("a web UI on a port of its own is known by its label, and reached there", () => {
  const readIt = (one: object) => {
    const known = {
      ...network(first),
      labels: { ...shared(first), [labelNames.webUi]: "http:8080/ui" },
    };
    return toClusters(
      { ...readContainers({ containers: [one], networks: [known] }), abandoned: new Set() },
      place,
    );
  };
  const [cluster] = readIt(container({}));
  expect(cluster).toMatchObject({ webUi: "http:8080/ui" });
  expect(cluster!.nodes[0]!.web).toMatchObject({ httpPort: 8080, httpsPort: 443 });
});

test("the platform is known by its label, and each node by its container's name and its hostname", () => {
  const readIt = (labels: object) => {
    const known = { ...network(first), labels: { ...shared(first), ...labels } };
    const reading = readContainers({ containers: [container({})], networks: [known] });
    return toClusters({ ...reading, abandoned: new Set() }, place);
  };
  const [cluster] = readIt({ [labelNames.platform]: "slurm 80,6817 24.05" });
  expect(cluster).toMatchObject({
    platform: "slurm 80,6817 24.05",
    nodes: [{ hostname: "master-0", containerName: "cluster-e2e-default-master_0" }],
  });
  expect(readIt({})[0]?.platform).toBeUndefined();
});

test("a node of a copy is shown with the address by which the others know it", () => {
  const [node] = read(container({ labels: { [labelNames.platformAddress]: "10.89.0.2/24" } }))[0]!
    .nodes;
  expect(node).toMatchObject({ publicAddress: "172.18.0.2", privateAddress: "10.89.0.2" });
});

test("where the bridge of its network is not here, a node is reached through the engine and has no public address", () => {
  const reading = { containers: [container({})], networks: [network(first)] };
  const asRead = (present: ReadonlySet<string>) =>
    toClusters(
      { ...readContainers({ ...reading, interfaces: present }), abandoned: new Set() },
      place,
    )[0]!.nodes[0]!;
  const node = asRead(new Set(["lo", "docker0"]));
  expect(node).toMatchObject({ publicAddress: undefined, privateAddress: "172.18.0.2" });
  expect(node.ssh).toMatchObject({ host: "172.18.0.2", port: 22, through: { title: "Docker" } });
  expect(asRead(new Set([bridge])).ssh).toEqual({ host: "172.18.0.2", port: 22, user: "root" });
});

test.each([
  ["", "its label is missing"],
  ["engine", "its engine was elsewhere when the cluster was created"],
  ["published", "an earlier version created it"],
])("with the reach %j a node is reached through the engine: %s", (reach) => {
  const labels = { ...shared(first), [labelNames.reach]: reach };
  const networks = [{ ...network(first), labels }];
  const reading = readContainers({ containers: [container({})], networks, interfaces });
  const [cluster] = toClusters({ ...reading, abandoned: new Set() }, place);
  expect(cluster!.nodes[0]!.ssh.through?.title).toBe("Docker");
});

test.each([
  ["running", "running"],
  ["paused", "paused"],
  ["created", "starting"],
  ["initialized", "starting"],
  ["stopping", "ending"],
  ["stopped", "stopped"],
  ["removing", "ending"],
  ["exited", "stopped"],
  ["dead", "ended"],
])("a container that is %s is a node that is %s", (status, state) => {
  expect(read(container({ status }))[0]!.nodes[0]!.state as string).toBe(state);
});

test("a stopped container says why, and its cluster is incomplete", () => {
  const [cluster] = read(
    container({}),
    container({ role: "agent", status: "exited", exitCode: 137, outOfMemory: true }),
  );
  expect(cluster!.state).toBe("incomplete");
  expect(cluster!.nodes[1]!.stateReason).toBe(
    "the container stopped with status 137 (a process in it was killed because memory ran out)",
  );
});

test.each([
  [{ exitCode: 128, error: "no space left on device" }, "status 128: no space left on device"],
  [{ exitCode: 137 }, "status 137 (its power was cut, or this computer ran out of memory)"],
  [{ exitCode: 0 }, "status 0 (it was shut down)"],
  [{ exitCode: 130 }, "status 130 (it was shut down)"],
  [{ exitCode: 129 }, "status 129 (it has rebooted itself; start it again)"],
  [{ exitCode: 133 }, "status 133 (it has rebooted itself; start it again)"],
  [{ exitCode: 1 }, "status 1"],
])("the end of a container with %j is explained", (sketch, reason) => {
  const [cluster] = read(container({ status: "exited", ...sketch }));
  expect(cluster!.nodes[0]!.stateReason).toBe(`the container stopped with ${reason}`);
});

test("where all have stopped there still is a cluster", () => {
  expect(read(container({ status: "exited" }))[0]!.state).toBe("stopped");
});

test("a network alone is a cluster without nodes", () => {
  const reading = readContainers({ containers: [], networks: [network(first)] });
  const clusters = toClusters({ ...reading, abandoned: new Set() }, place);
  expect(clusters).toMatchObject([
    { id: "default", creationId: first, state: "incomplete", nodes: [] },
  ]);
});

test("two creations of one id are two clusters, the older one first", () => {
  const clusters = read(container({}), container({ creationId: second }));
  expect(clusters.map(({ creationId }) => creationId)).toEqual([first, second]);
  const older = { ...container({ creationId: second }), Created: "2025-12-31T00:00:00Z" };
  expect(read(container({}), older).map(({ creationId }) => creationId)).toEqual([second, first]);
});

test("what a create that was cut short never started is over, and what it started runs", () => {
  const containers = [container({}), container({ role: "agent", status: "created" })];
  const [cluster] = toClusters(inventory(containers, [first]), place);
  expect(cluster!.state).toBe("incomplete");
  expect(cluster!.nodes.map(({ state, stateReason }) => [state, stateReason])).toEqual([
    ["running", undefined],
    ["ended", "the container was never started: its create was interrupted"],
  ]);
  const [other] = toClusters(inventory(containers, [second]), place);
  expect(other!.state).toBe("starting");
});

test("a cluster is as old as its first container, or of unknown age", () => {
  const older = { ...container({ role: "agent" }), Created: "2025-12-31T00:00:00Z" };
  expect(read(container({}))[0]!.createdAt).toEqual(new Date("2026-01-01T00:00:00.500Z"));
  expect(read(container({}), older)[0]!.createdAt).toEqual(new Date("2025-12-31T00:00:00Z"));
  expect(read({ ...container({}), Created: "yesterday" })[0]!.createdAt).toBeUndefined();
});

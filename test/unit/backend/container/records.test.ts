import { expect, test } from "bun:test";
import type { Container } from "../../../../src/backend/container/describe.ts";
import { labelNames, readLabels } from "../../../../src/backend/container/labels.ts";
import { toClusters } from "../../../../src/backend/container/records.ts";
import { nodeReference } from "../../../../src/model/cluster-record.ts";

interface Sketch {
  readonly role?: string;
  readonly index?: string;
  readonly status?: string;
  readonly exitCode?: number;
  readonly outOfMemory?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  readonly address?: string;
  readonly ports?: Container["NetworkSettings"]["Ports"];
}

const shared = {
  [labelNames.clusterId]: "default",
  [labelNames.creationId]: "c1",
  [labelNames.counts]: "master=1 agent=1 public_agent=0",
  [labelNames.variant]: "enterprise",
  [labelNames.distribution]: "debian-12",
};

function container(sketch: Sketch): Container {
  const { role = "master", index = "0", status = "running", address = "172.18.0.2" } = sketch;
  return {
    Id: `${role}${index}`.padEnd(64, "0"),
    Created: "2026-01-01T00:00:00.5Z",
    State: { Status: status, ExitCode: sketch.exitCode ?? 0, OOMKilled: sketch.outOfMemory ?? false, Error: "" },
    Config: { Labels: { ...shared, [labelNames.role]: role, [labelNames.index]: index, ...sketch.labels } },
    NetworkSettings: { Networks: { own: { IPAddress: address } }, Ports: sketch.ports ?? {} },
  };
}

const read = (...containers: readonly Container[]) =>
  toClusters({ containers, networks: [], abandoned: new Set() }, "/state/container");

test("reads a cluster back from labels, its nodes in order, at their own addresses", () => {
  const [cluster, ...others] = read(container({ role: "agent", address: "172.18.0.3" }), container({}));
  expect(others).toEqual([]);
  expect(cluster).toMatchObject({
    id: "default",
    creationId: "c1",
    backend: "container",
    variant: "enterprise",
    distribution: "debian-12",
    state: "running",
    createdAt: new Date("2026-01-01T00:00:00.500Z"),
    expiresAt: undefined,
    directory: "/state/container/default-c1",
  });
  expect(cluster!.nodes.map(nodeReference)).toEqual(["master_0", "agent_0"]);
  expect(cluster!.nodes[1]).toMatchObject({
    publicAddress: "172.18.0.3",
    privateAddress: "172.18.0.3",
    ssh: { host: "172.18.0.3", port: 22, user: "root" },
    web: { host: "172.18.0.3", httpPort: 80, httpsPort: 443 },
  });
});

test("where ports are published, they are the way in, and the node has no public address", () => {
  const ports = { "22/tcp": [{ HostPort: "32768" }], "80/tcp": [{ HostPort: "32769" }], "443/tcp": null };
  const [node] = read(container({ ports, labels: { [labelNames.reach]: "published" } }))[0]!.nodes;
  expect(node).toMatchObject({
    publicAddress: undefined,
    privateAddress: "172.18.0.2",
    ssh: { host: "127.0.0.1", port: 32768 },
    web: { host: "127.0.0.1", httpPort: 32769, httpsPort: 0 },
  });
  const [early] = read(container({ ports: {}, labels: { [labelNames.reach]: "published" } }))[0]!.nodes;
  expect(early!.ssh.host).toBe("");
});

test.each([
  ["running", "running"],
  ["paused", "running"],
  ["created", "starting"],
  ["initialized", "starting"],
  ["stopping", "ending"],
  ["stopped", "ended"],
  ["removing", "ending"],
  ["exited", "ended"],
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
    "the container stopped with status 137 (something in it was killed for want of memory)",
  );
});

test("where all have stopped there still is a cluster to destroy", () => {
  expect(read(container({ status: "exited" }))[0]!.state).toBe("incomplete");
});

test("a network alone is a cluster without nodes, as are labels that tell little", () => {
  const labels = readLabels({ [labelNames.clusterId]: "default" });
  const old = container({ labels: { [labelNames.role]: "captain", [labelNames.creationId]: "" } });
  const clusters = toClusters({ containers: [old], networks: [{ id: "n", labels }], abandoned: new Set() }, "/state");
  expect(clusters).toMatchObject([{ id: "default", creationId: "", state: "incomplete", nodes: [] }]);
});

test("two creations of one id are two clusters", () => {
  const clusters = read(container({}), container({ labels: { [labelNames.creationId]: "c2" } }));
  expect(clusters.map(({ creationId }) => creationId)).toEqual(["c1", "c2"]);
});

test("what a create that was cut short never started is over, and what it started runs", () => {
  const containers = [container({}), container({ role: "agent", status: "created" })];
  const abandoned = new Set(["c1"]);
  const [cluster] = toClusters({ containers, networks: [], abandoned }, "/state");
  expect(cluster!.state).toBe("incomplete");
  expect(cluster!.nodes.map(({ state, stateReason }) => [state, stateReason])).toEqual([
    ["running", undefined],
    ["ended", "the container was never started: its create was cut short"],
  ]);
  const [other] = toClusters({ containers, networks: [], abandoned: new Set(["c2"]) }, "/state");
  expect(other!.state).toBe("starting");
});

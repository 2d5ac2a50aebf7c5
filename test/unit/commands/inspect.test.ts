import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { programFor } from "../../../src/commands/program.ts";
import { inspectFacts, inspectText } from "../../../src/commands/inspect-view.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { mapOutside, mapTexts, unmarked } from "../../../src/outside-text.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { keepFaultNote } from "../../../src/store/fault-notes.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const nowMs = Date.parse("2026-01-01T12:00:00Z");
const master = {
  id: "i-0",
  role: "master",
  index: 0,
  state: "running",
  publicAddress: "192.0.2.1",
  privateAddress: "10.0.0.1",
  ssh: { host: "192.0.2.1", port: 22, user: "admin" },
  web: { host: "192.0.2.1", httpPort: 80, httpsPort: 443 },
} as NodeRecord;
const agent = {
  ...master,
  id: "i-1",
  role: "agent",
  publicAddress: undefined,
  privateAddress: undefined,
} as NodeRecord;
const cluster: ClusterRecord = {
  ...exampleCluster([master, agent], "oss"),
  expiresAt: new Date(nowMs + 90 * 60_000),
  maximumCost: 0.72,
};

const inspect = (record: ClusterRecord, words = "") =>
  runCommandLine(`inspect -c example${words}`, {
    kind: cloudKind,
    backend: { find: async () => record },
    nowMs,
  });

/** Label and value, or the cells of a node's line. */
const linesOf = (text: string): readonly (readonly string[])[] =>
  text.split("\n").map((line) => line.split(/ {2,}/));

test("shows time left, cost, and each node with its addresses", async () => {
  const { stdout } = await inspect(cluster);
  const lines = linesOf(stdout);
  expect(lines.slice(0, 5).map(([label]) => label)).toEqual([
    "Cluster",
    "State",
    "Variant",
    "Distribution",
    "Region",
  ]);
  expect(lines.find(([label]) => label === "State")![1]).toStartWith("running (");
  expect(lines).toContainEqual(["Region", "us-west-2"]);
  expect(lines).toContainEqual(["Ends", "13:30 UTC (in 1 h 30 min)"]);
  expect(lines).toContainEqual(["Cost at most", "$0.72, storage and addresses extra"]);
  expect(lines).toContainEqual(["Web UI", "http://192.0.2.1/"]);
  expect(lines).toContainEqual([
    "SSH key",
    "not on this computer: the cluster was created elsewhere",
  ]);
  expect(lines).toContainEqual(["NODE", "STATE", "PUBLIC IP", "PRIVATE IP", "SSH USER", "ID"]);
  expect(lines).toContainEqual(["master_0", "running", "192.0.2.1", "10.0.0.1", "admin", "i-0"]);
  expect(lines).toContainEqual(["agent_0", "running", "–", "–", "admin", "i-1"]);
  expect(stdout).toEndWith("i-1");
});

test("names the platform and its version instead of a variant, and in JSON what other programs call a node", async () => {
  const node = { ...master, hostname: "master-0", containerName: "cluster-e2e-example-master_0" };
  const record = { ...exampleCluster([node, agent], "none"), platform: "slurm 80,6817 24.05" };
  const { stdout, data } = await inspect(record);
  expect(linesOf(stdout)[2]).toEqual(["Platform", "slurm 24.05 (when the cluster was created)"]);
  expect(stdout).not.toContain("Variant");
  expect(data).toMatchObject({
    cluster: {
      platform: { name: "slurm", version: "24.05", ports: [80, 6817] },
      nodes: [
        { hostname: "master-0", containerName: "cluster-e2e-example-master_0" },
        { hostname: undefined, containerName: undefined },
      ],
    },
  });
  expect(linesOf(stdout)).toContainEqual(["Ports", "80, 6817"]);
  const forwarded = { ...master, ssh: { ...master.ssh, port: 40_022 } };
  const inMachine = await inspect({ ...record, nodes: [forwarded] });
  expect(linesOf(inMachine.stdout)).toContainEqual([
    "Ports",
    "80, 6817: run `forward` to reach one",
  ]);
  const unknown = await inspect(exampleCluster([master], "none"));
  expect(unknown.stdout).not.toMatch(/Variant|Platform/);
});

test("the names that shells offer are those of the nodes", async () => {
  const { stdout } = await inspect(cluster, " --output names");
  expect(stdout.split("\n")).toEqual(["master_0", "agent_0"]);
});

test("a node that has stopped, and one that is gone, are named with what is known", async () => {
  const stopped = {
    ...agent,
    state: "ended",
    stateReason: "the container stopped with status 137.",
  } as NodeRecord;
  const requested = { master: 1, agent: 2, public_agent: 0 };
  const { stdout, data } = await inspect({
    ...exampleCluster([master, stopped], "oss"),
    state: "incomplete",
    requested,
  });
  const problems = [
    "agent_0 has stopped: the container stopped with status 137.",
    "agent_1 is missing: its machine no longer exists.",
  ];
  expect(unmarked(stdout)).toEndWith(`\n\n${problems.join("\n")}`);
  expect(mapTexts(data, unmarked)).toMatchObject({ cluster: { problems } });
  expect((await inspect(cluster)).data).toMatchObject({ cluster: { problems: [] } });
  const silent = await inspect(exampleCluster([master, { ...stopped, stateReason: "" }], "oss"));
  expect(silent.data).toMatchObject({ cluster: { problems: ["agent_0 has stopped."] } });
});

test("what a node says of its version, and a machine of its end, is marked, so that secrets in it are masked", async () => {
  const masked = (text: string): string =>
    mapOutside(text, (part) => part.replaceAll("hunter2", "***"));
  const stopped = { ...agent, state: "ended", stateReason: "the hunter2 stopped" } as NodeRecord;
  const versions = new Map([["master_0", "hunter2 1.0"]]);
  const facts = await inspectFacts(exampleCluster([master, stopped], "oss"), versions, nowMs);
  for (const text of [
    masked(inspectText(facts, 80, nowMs)),
    JSON.stringify(mapTexts(facts, masked)),
  ]) {
    expect(text).toContain("*** 1.0");
    expect(text).toContain("the *** stopped");
    expect(text).not.toContain("hunter2");
  }
});

test("versions have a column of their own, and a platform may have no web UI", async () => {
  const none = exampleCluster([master, agent], "none");
  const facts = await inspectFacts(none, new Map([["master_0", "1.0"]]), nowMs);
  const lines = linesOf(unmarked(inspectText(facts, 120, nowMs)));
  expect(lines.slice(-3).map((cells) => cells.at(-1))).toEqual(["VERSION", "1.0", "–"]);
  expect(lines).toContainEqual(["Web UI", "none"]);
  expect(facts.webUi).toBeNull();
});

test("what a cluster does not have is left out, and a key that is elsewhere is no path", async () => {
  const { stdout, data } = await inspect({
    ...exampleCluster([agent], "oss"),
    region: undefined,
  });
  const labels = linesOf(stdout).map(([label]) => label);
  expect(labels).not.toContain("Region");
  expect(labels).not.toContain("Time left");
  expect(labels).not.toContain("Cost at most");
  expect(stdout).not.toContain("/nowhere");
  expect(linesOf(stdout)).toContainEqual(["Web UI", "no master has an address yet"]);
  expect(data).toMatchObject({ cluster: { sshKey: { isHere: false } } });
  expect(JSON.parse(JSON.stringify(data))["cluster"]).not.toHaveProperty("webUi");
});

test("where the key is, its path is shown, and ssh can be configured", async () => {
  await using folder = await scratchFolder();
  const path = creationFiles(folder.path).privateKey;
  await writeFile(path, "the private key");
  const own = { ...cluster, directory: folder.path };
  expect(linesOf((await inspect(own)).stdout)).toContainEqual(["SSH key", path]);
  const { stdout } = await inspect(own, " --output ssh-config");
  expect(stdout).toStartWith(
    "Host master_0 master_0.example master-0.example\n  HostName 192.0.2.1\n",
  );
});

test("a fault that was begun here is shown until its end", async () => {
  await using folder = await scratchFolder();
  const endsAt = new Date(nowMs + 60_000);
  await keepFaultNote(folder.path, { id: "0123abcd", description: "a slow network", endsAt });
  const { stdout, data } = await inspect({ ...cluster, directory: folder.path });
  expect(linesOf(stdout)).toContainEqual(["Fault", "a slow network, until 12:01 UTC"]);
  expect(data).toMatchObject({ cluster: { faults: [{ id: "0123abcd", endsAt }] } });
});

test("programs of clusters that always end by themselves speak of the time left, the others of a lifetime that a user chose", () => {
  const [cloud, container] = [cloudKind, containerKind].map((kind) => {
    const commands = programFor(kind).commands.filter(
      ({ name }) => name === "inspect" || name === "list",
    );
    return commands.map(({ description }) => /time (?:it has )?left/.exec(description)?.[0]);
  });
  expect(cloud).toEqual(["time left", "time it has left"]);
  expect(container).toEqual([undefined, "time it has left"]);
});

import type { Backend, BackendKind, CloudPart, LocalPart } from "../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { exampleCluster, exampleScope } from "../../support/install-example.ts";
import { runCommandLine } from "../../support/run-command.ts";

const admission = {} as CloudPart["admission"];
const nowMs = Date.parse("2026-01-01T12:00:00Z");
const node = (role: string, index: number, state = "running") => ({
  id: `i-${role}-${index}`,
  role,
  index,
  state,
});
const nodes = [node("master", 0), node("agent", 0), node("agent", 1), node("agent", 2, "ended")];
const cluster: ClusterRecord = {
  ...exampleCluster(nodes as unknown as readonly NodeRecord[], "enterprise"),
  createdAt: new Date(nowMs - 30 * 60_000),
  expiresAt: new Date(nowMs + 90 * 60_000),
  maximumCost: 0.72,
};
const timeless: ClusterRecord = { ...exampleCluster([], "oss"), id: "timeless", region: undefined };

const list = (
  words: string,
  backend: Partial<Backend<unknown>>,
  kind: BackendKind = cloudKind,
  columns = 120,
) => runCommandLine(`list${words}`, { kind, backend, nowMs, columns });

const rowsOf = (text: string): readonly (readonly string[])[] =>
  text.split("\n").map((line) => line.split(/ {2,}/));

test("a line per cluster, with the machines that have not ended, its time left and its cost", async () => {
  const { stdout, data, told } = await list("", { list: async () => [cluster, timeless] });
  expect(rowsOf(stdout)).toEqual([
    ["ID", "STATE", "VARIANT", "MASTERS", "AGENTS", "PUBLIC AGENTS", "TIME LEFT", "COST AT MOST"],
    ["example", "running", "enterprise", "1", "2", "0", "1 h 30 min", "$0.72"],
    ["timeless", "running", "oss", "0", "0", "0", "–", "–"],
  ]);
  expect(data).toMatchObject({
    clusters: [{ id: "example", ageSeconds: 1800, secondsLeft: 5400 }, { id: "timeless" }],
  });
  expect(told).toEqual([]);
});

test("a platform is named with its version, and in JSON with its ports; one of an earlier version isn't known", async () => {
  const bare = { ...timeless, variant: "none" as const };
  const slurm = { ...bare, id: "slurm", platform: "slurm 80,6817 24.05" };
  const { stdout, data } = await list("", { list: async () => [slurm, bare, timeless] });
  expect(rowsOf(stdout).map((row) => row.slice(0, 3))).toEqual([
    ["ID", "STATE", "PLATFORM"],
    ["slurm", "running", "slurm 24.05"],
    ["timeless", "running", "–"],
    ["timeless", "running", "oss"],
  ]);
  const platform = { name: "slurm", version: "24.05", ports: [80, 6817] };
  expect(data).toMatchObject({ clusters: [{ platform, variant: "none" }, {}, {}] });
  const { stdout: json } = await list(" --output json", { list: async () => [bare] });
  expect(json).not.toContain("platform");
});

test("a page has room for a row of a cluster in the cloud", async () => {
  const { stdout } = await list("", { list: async () => [cluster] }, cloudKind, 80);
  const lines = stdout.split("\n");
  expect(lines.at(-1)).toBe(
    "example  running  enterprise  1        2       0          1 h 30 min  $0.72",
  );
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
});

test("clusters without a lifetime have no columns for it", async () => {
  const { stdout } = await list(
    "",
    { list: async () => [{ ...cluster, expiresAt: undefined }] },
    containerKind,
  );
  expect(rowsOf(stdout)[0]).toEqual([
    "ID",
    "STATE",
    "VARIANT",
    "MASTERS",
    "AGENTS",
    "PUBLIC AGENTS",
    "AGE",
  ]);
  expect(rowsOf(stdout)[1]).toHaveLength(7);
});

test("a chosen lifetime has a column once a cluster has one", async () => {
  const { stdout } = await list("", { list: async () => [cluster, timeless] }, containerKind);
  expect(rowsOf(stdout)[0]?.slice(-2)).toEqual(["AGE", "TIME LEFT"]);
  expect(
    rowsOf(stdout)
      .slice(1)
      .map((row) => row.at(-1)),
  ).toEqual(["1 h 30 min", "–"]);
  expect(rowsOf(stdout).map((row) => row.at(-2))).toEqual(["AGE", "30 min", "–"]);
});

test("the remains of clusters whose time is over are removed, but not for a list of ids, which completion asks for", async () => {
  const calls: string[] = [];
  const local = { removeExpired: async () => void calls.push("removed") } as unknown as LocalPart;
  await list(" --quiet", { list: async () => [], local }, containerKind);
  expect(calls).toEqual([]);
  await list("", { list: async () => [], local }, containerKind);
  expect(calls).toEqual(["removed"]);
});

test("--quiet prints the ids alone", async () => {
  expect((await list(" --quiet", { list: async () => [cluster, timeless] })).stdout).toBe(
    "example\ntimeless",
  );
});

test("where there is no cluster, nothing is printed, and a note says where there is none", async () => {
  const none = await list("", { list: async () => [], scope: exampleScope });
  expect(none).toMatchObject({
    stdout: "",
    data: { clusters: [] },
    told: ["No clusters in region us-west-2."],
  });
  expect((await list("", { list: async () => [] }, containerKind)).told).toEqual(["No clusters."]);
});

test("where there is no cluster anywhere, the note names no place", async () => {
  const listAll = async () => ({ clusters: [], unreachable: [] });
  expect(
    (await list(" --all-regions", { scope: exampleScope, cloud: { admission, listAll } })).told,
  ).toEqual(["No clusters."]);
});

test("everywhere, each line begins with the region, and a region that does not answer is warned of", async () => {
  const unreachable = [{ scope: "eu-west-1", reason: "it does not answer" }];
  const listAll = async () => ({ clusters: [cluster, timeless], unreachable });
  const parts = { scope: exampleScope, cloud: { admission, listAll } };
  const { stdout, told, data } = await list(" --all-regions", { ...parts, list: async () => [] });
  expect(rowsOf(stdout).map(([first]) => first)).toEqual(["REGION", "us-west-2", "–"]);
  expect(told).toHaveLength(1);
  expect(told[0]).toMatch(/^Warning: .*eu-west-1: it does not answer/);
  expect(data).toMatchObject({
    unreachable: [{ region: "eu-west-1", reason: "it does not answer" }],
  });
});

import { expect, test } from "bun:test";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import type { ClusterRecord } from "../../../src/model/cluster-record.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { failureOf } from "../../support/failure-of.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** Clusters in a folder of the test's, which are forgotten when they are removed. */
async function openClusters(ids: readonly string[], snapshots: readonly string[] = []) {
  const folder = await scratchFolder();
  const standing = new Set(ids);
  const record = (id: string) => ({
    ...exampleCluster([], "oss"),
    id,
    directory: `${folder.path}/${id}`,
  });
  const backend = {
    root: folder.path,
    ...(snapshots.length > 0 && {
      local: {
        snapshots: {
          list: async ({ id }: ClusterRecord) =>
            snapshots.map((name) => ({ name: `${id}:${name}` })),
        },
      } as never,
    }),
    list: async () => [...standing].map(record),
    find: async (id: string) => (standing.has(id) ? record(id) : undefined),
    remove: async ({ id }: { readonly id: string }) => {
      standing.delete(id);
      return undefined;
    },
  };
  const run = (line: string, answer?: boolean) =>
    runCommandLine(line, {
      kind: containerKind,
      backend,
      nowMs: 0,
      ...(answer !== undefined && { answer }),
    });
  return { standing, run, [Symbol.asyncDispose]: folder[Symbol.asyncDispose] };
}

test("--all asks first, names every cluster, and removes nothing without a yes", async () => {
  await using clusters = await openClusters(["one", "two"]);
  const refused = await clusters.run("destroy --all", false);
  expect(refused.status).toBe(1);
  expect(refused.asked).toEqual([expect.stringMatching(/2 clusters: one, two\?$/)]);
  expect([...clusters.standing]).toEqual(["one", "two"]);
  const agreed = await clusters.run("destroy --all", true);
  expect(agreed).toMatchObject({
    status: 0,
    stdout: "one\ntwo",
    data: { destroyed: ["one", "two"] },
  });
  expect(clusters.standing.size).toBe(0);
});

test("--yes asks nothing", async () => {
  await using clusters = await openClusters(["one"]);
  const ran = await clusters.run("destroy --all --yes");
  expect(ran).toMatchObject({ status: 0, stdout: "one", asked: [], told: [] });
  expect(clusters.standing.size).toBe(0);
});

test("without a cluster, --all asks nothing and says so", async () => {
  await using clusters = await openClusters([]);
  expect(await clusters.run("destroy --all", false)).toMatchObject({
    status: 0,
    asked: [],
    told: ["No clusters."],
  });
});

test("the snapshots that would be lost are named first", async () => {
  await using clusters = await openClusters(["one"], ["installed", "ready"]);
  const refused = await clusters.run("destroy -c one", false);
  expect(refused).toMatchObject({ status: 1, told: ["Nothing was removed."] });
  expect(refused.asked).toEqual([
    "Remove cluster one and its snapshots: one:installed, one:ready?",
  ]);
  const all = await clusters.run("destroy --all", false);
  expect(all.asked).toEqual([
    "Remove 1 cluster: one, and their snapshots: one:installed, one:ready?",
  ]);
  const unasked = await failureOf(clusters.run("destroy -c one"));
  expect(unasked).toMatchObject({
    id: "bad-usage",
    facts: { cluster: "one", snapshots: ["one:installed", "one:ready"] },
  });
  expect([...clusters.standing]).toEqual(["one"]);
  expect(await clusters.run("destroy -c one", true)).toMatchObject({ status: 0, stdout: "one" });
  expect(clusters.standing.size).toBe(0);
});

test("--all names the snapshots of every cluster", async () => {
  await using clusters = await openClusters(["one", "two"], ["installed"]);
  const { asked } = await clusters.run("destroy --all", false);
  expect(asked[0]).toEndWith(", and their snapshots: one:installed, two:installed?");
});

test("a cluster without snapshots is removed without a question, and its snapshots with --yes", async () => {
  await using plain = await openClusters(["one"]);
  expect(await plain.run("destroy -c one")).toMatchObject({ status: 0, asked: [] });
  await using clusters = await openClusters(["one"], ["installed"]);
  expect(await clusters.run("destroy -c one --yes")).toMatchObject({ status: 0, asked: [] });
});

test("without a terminal --all needs --yes, and it never goes with an id", async () => {
  await using clusters = await openClusters(["one"]);
  const unasked = await failureOf(clusters.run("destroy --all"));
  expect(unasked.id).toBe("bad-usage");
  expect(unasked.message).toContain("--yes");
  const both = await failureOf(clusters.run("destroy --all --yes -c one"));
  expect(both.message).toContain("--cluster-id");
  expect([...clusters.standing]).toEqual(["one"]);
});

test("--if-exists succeeds without a cluster, unless another place may have it", async () => {
  await using clusters = await openClusters(["one"]);
  expect(await clusters.run("destroy --if-exists -c one")).toMatchObject({
    status: 0,
    data: { destroyed: ["one"] },
  });
  expect(await clusters.run("destroy --if-exists -c one")).toMatchObject({
    status: 0,
    stdout: "",
    data: { destroyed: [] },
    told: ['There is no cluster "one", so nothing was removed.'],
  });
  expect(await failureOf(clusters.run("destroy -c one"))).toMatchObject({
    id: "cluster-not-found",
  });
  const elsewhere = async () => ({ scopes: ["podman"], unreachable: [] });
  const scope = {
    name: "docker",
    kind: "engine",
    option: "engine",
    findElsewhere: elsewhere,
  } as never;
  const backend = { root: "/", scope, find: async () => undefined };
  const other = runCommandLine("destroy --if-exists", { kind: containerKind, backend, nowMs: 0 });
  expect(await failureOf(other)).toMatchObject({ id: "cluster-not-found" });
});

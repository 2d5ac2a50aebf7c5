/**
 * A cluster in a CI pipeline: one job creates and exports it; another imports it, syncs, runs tests, and fetches the
 * results.
 */
import { expect, test } from "bun:test";
import { readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { clusterNames, makeCheckout } from "./support/checkout.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const { backend: cloud, artifact } = shareBackend(async () => startTestCloud("container"));
const exported = (): string => join(cloud().folder, "exported.json");
const summary = (): string => join(cloud().folder, "summary.md");

/** Runs the program on another computer of the same account. */
const runThere = (...words: readonly string[]) =>
  cloud().run(words, { environment: { XDG_STATE_HOME: join(cloud().folder, "other") } });

// Shows R96.
test("create appends what it has made to the step's summary, with the time until it was ready", async () => {
  const words =
    "create --variant oss --linux-distribution debian-12 --agents 0 --public-agents 0 --wait --summary";
  const created = await cloud().run([...words.split(" "), artifact()], {
    environment: { GITHUB_STEP_SUMMARY: summary() },
  });
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: "default\n",
  });
  const text = await readFile(summary(), "utf8");
  expect(text.match(/^###.*$/gm)).toEqual(["### Cluster ready"]);
  expect(text).toContain("| Cluster | `default` |");
  expect(text).toContain("| Nodes | `1 master, 0 agents, 0 public agents` |");
  expect(text).toMatch(/^\| Phases \| `.*Boot \d+\.\d s.*` \|$/m);
});

// Shows R116.
test("another computer imports the cluster, and then syncs a checkout and runs its tests", async () => {
  expect((await cloud().run(["export", "--output-file", exported()])).status).toBe(0);
  expect((await stat(exported())).mode & 0o777).toBe(0o600);
  expect(await runThere("sync", cloud().folder)).toMatchObject({ status: 2 });
  const tests = { "conftest.py": "# conftest\n", "run-all*": "#!/bin/sh\necho ran from $PWD\n" };
  const checkout = await makeCheckout(
    join(cloud().folder, "checkout"),
    "oss",
    { tests, library: {} },
    clusterNames,
  );
  expect(await runThere("sync", checkout)).toMatchObject({
    status: 5,
    stderr: expect.stringContaining("[key-missing]"),
  });
  expect(await runThere("import", exported())).toMatchObject({ status: 0, stdout: "default\n" });
  const synced = await runThere("sync", checkout, "--output", "json");
  expect(synced.status, synced.stderr).toBe(0);
  expect(JSON.parse(synced.stdout)).toMatchObject({
    masters: [{ node: "master_0", files: 2, sentFiles: 2 }],
  });
  expect(await runThere("run", "./run-all")).toMatchObject({
    status: 0,
    stdout: "ran from /opt/cluster/active/integration-test\n",
  });
});

// Shows R118.
test("run brings files and folders back after the command, whose exit status stays its own", async () => {
  const here = join(cloud().folder, "fetched");
  const line =
    "mkdir -p reports/deep && echo 1 >reports/a.xml && echo 2 >reports/deep/b.xml && echo log >/tmp/out.log; exit 37";
  const fetches = [
    "--fetch",
    `reports:${join(here, "reports")}`,
    "--fetch",
    `/tmp/out.log:${here}/`,
  ];
  const ran = await runThere("run", ...fetches, line);
  expect(ran.status, ran.stderr).toBe(37);
  const files = await readdir(here, { recursive: true });
  expect(files.toSorted()).toEqual([
    "out.log",
    "reports",
    "reports/a.xml",
    "reports/deep",
    "reports/deep/b.xml",
  ]);
  expect(await readFile(join(here, "reports", "deep", "b.xml"), "utf8")).toBe("2\n");
  expect(await readFile(join(here, "out.log"), "utf8")).toBe("log\n");
  const missing = await runThere("run", "--fetch", `/tmp/nothing:${join(here, "nothing")}`, "true");
  expect(missing).toMatchObject({
    status: 255,
    stderr: expect.stringContaining("[transfer-failed]"),
  });
  const outside = `mkdir -p /tmp/hostile && ln -sfn /etc/passwd /tmp/hostile/link`;
  const hostile = await runThere(
    "run",
    "--fetch",
    `/tmp/hostile:${join(here, "hostile")}`,
    outside,
  );
  expect(hostile).toMatchObject({
    status: 255,
    stderr: expect.stringContaining("leads out of the folder"),
  });
  expect((await readdir(here)).toSorted()).toEqual(["out.log", "reports"]);
});

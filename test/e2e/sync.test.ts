/** Files of a checkout reach the masters of real clusters, following the rules of the documentation. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, rm, symlink } from "node:fs/promises";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { clusterNames, makeCheckout } from "./support/checkout.ts";
import type { StartOptions } from "./support/executable.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const testsFolder = "/opt/cluster/active/integration-test";
const libraryFolder =
  "/opt/cluster/active/bootstrap/lib/python3.*/site-packages/cluster_internal_utils";

const state: { cloud?: TestCloud; oss?: string; enterprise?: string } = {};
const cloud = (): TestCloud => state.cloud!;

/** An open source cluster with three masters, an enterprise one, and one whose installation has failed. */
beforeAll(async () => {
  state.cloud = await startTestCloud("container");
  const { folder } = state.cloud;
  const [oss, enterprise] = await Promise.all([
    buildArtifact("oss", folder),
    buildArtifact("enterprise", folder),
  ]);
  await Bun.write(
    join(folder, "fault.yaml"),
    "fault_injection: {role: master, message: not today}\n",
  );
  await Bun.write(join(folder, "license.txt"), "a-license-key\n");
  await makeCheckouts(folder);
  const created = await Promise.all([
    cloud().run(createWords("default", "oss", [oss, "--masters", "3"])),
    cloud().run(
      createWords("paid", "enterprise", [enterprise, "--license-key", join(folder, "license.txt")]),
    ),
    cloud().run(createWords("broken", "oss", [oss, "--extra-config", join(folder, "fault.yaml")])),
  ]);
  expect(created.map(({ status }) => status)).toEqual([0, 0, 0]);
  const waited = await Promise.all(
    ["default", "paid"].map((id) => cloud().run(["wait", "-c", id, "--timeout", "14m"])),
  );
  expect(waited.map(({ status }) => status)).toEqual([0, 0]);
});

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

const createWords = (id: string, variant: string, more: readonly string[]): readonly string[] => [
  ...`create -c ${id} --variant ${variant} --linux-distribution debian-12 --agents 0 --public-agents 0`.split(
    " ",
  ),
  ...more,
];

async function makeCheckouts(folder: string): Promise<void> {
  const tests = {
    "conftest.py": "# oss conftest\n",
    "test_oss.py": "# oss test\n",
    "util/tool.py": "# oss util\n",
    "run-all*": "#!/bin/sh\necho ran from $PWD\n",
    "deep/er/data.txt": "data\n",
    "__pycache__/test_oss.pyc": "cache",
    "left.pyc": "cache",
  };
  state.oss = await makeCheckout(
    join(folder, "oss"),
    "oss",
    { tests, library: { "cli.py": "# oss library\n", "__pycache__/cli.pyc": "cache" } },
    clusterNames,
  );
  state.enterprise = await makeCheckout(
    join(folder, "enterprise"),
    "enterprise",
    {
      tests: { "conftest.py": "# paid conftest\n", "test_paid.py": "# paid test\n" },
      library: { "paid.py": "# paid library\n" },
    },
    clusterNames,
  );
}

/** The files of a folder on a master, sorted. */
async function filesOn(id: string, node: string, folder: string): Promise<readonly string[]> {
  const line = `cd ${folder} && find . -type f ! -path '*/__pycache__/*' | LC_ALL=C sort`;
  const { stdout } = await cloud().run(["run", "-c", id, "--node", node, line]);
  return stdout.trim().split("\n");
}

interface Synced {
  readonly masters: readonly {
    node: string;
    files: number;
    sentFiles: number;
    sentBytes: number;
  }[];
}

async function sync(words: readonly string[], options = {}): Promise<Synced> {
  const synced = await cloud().run(["sync", ...words, "--output", "json"], options);
  expect(synced).toMatchObject({ status: 0 });
  return JSON.parse(synced.stdout) as Synced;
}

const sent = ({ masters }: Synced): readonly number[] => masters.map(({ sentFiles }) => sentFiles);

const ossTests = [
  "./conftest.py",
  "./deep/er/data.txt",
  "./run-all",
  "./test_oss.py",
  "./util/tool.py",
];

// Shows R70.
test("an open source checkout replaces the tests on all three masters, and adds to the library", async () => {
  const { masters } = await sync([state.oss!]);
  expect(masters.map(({ node, files, sentFiles }) => ({ node, files, sentFiles }))).toEqual(
    [0, 1, 2].map((index) => ({ node: `master_${index}`, files: 6, sentFiles: 6 })),
  );
  for (const { node } of masters) {
    expect(await filesOn("default", node, testsFolder)).toEqual(ossTests);
    expect(await filesOn("default", node, libraryFolder)).toEqual([
      "./__init__.py",
      "./cli.py",
      "./slurm.py",
    ]);
  }
  const line = `stat -c '%a %U:%G' ${testsFolder}/run-all ${testsFolder}/test_oss.py && ./run-all`;
  expect((await cloud().run(["run", "--node", "master_2", line])).stdout).toBe(
    `755 root:root\n644 root:root\nran from ${testsFolder}\n`,
  );
});

// Shows R115.
test("a second time nothing is sent, and later only what has changed", async () => {
  expect(sent(await sync([state.oss!]))).toEqual([0, 0, 0]);
  const changed = join(state.oss!, "packages/integration-test/extra/test_oss.py");
  await Bun.write(changed, "# another test\n");
  const { masters } = await sync([state.oss!]);
  expect(masters).toEqual(
    [0, 1, 2].map((index) => ({ node: `master_${index}`, files: 6, sentFiles: 1, sentBytes: 15 })),
  );
  await rm(join(state.oss!, "packages/integration-test/extra/test_oss.py"));
  await sync([state.oss!]);
  expect(await filesOn("default", "master_1", testsFolder)).not.toContain("./test_oss.py");
  await Bun.write(changed, "# oss test\n");
});

// Shows R71.
test("without CHECKOUT_DIR it is CLUSTER_CHECKOUT_DIR, and without that the current folder", async () => {
  const environment = { CLUSTER_CHECKOUT_DIR: "oss" };
  expect(sent(await sync([], { cwd: cloud().folder, environment }))).toEqual([1, 1, 1]);
  expect(sent(await sync([], { cwd: state.oss! }))).toEqual([0, 0, 0]);
  expect((await cloud().run(["sync"], { cwd: state.oss! })).stdout).toMatch(
    /^master_0: 6 files, 0 sent \(0 bytes\)\nmaster_1: .*\nmaster_2: .*\n[\d.]+ s\n$/,
  );
});

// Shows R67.
test("run --sync-dir syncs to all masters before the command runs", async () => {
  await Bun.write(join(state.oss!, "packages/integration-test/extra/test_late.py"), "# late\n");
  const ran = await cloud().run([
    "run",
    "--node",
    "master_1",
    "--sync-dir",
    state.oss!,
    "cat",
    "test_late.py",
  ]);
  expect(ran).toMatchObject({ status: 0, stdout: "# late\n" });
  expect(await filesOn("default", "master_2", testsFolder)).toContain("./test_late.py");
});

test.each<
  [string, (folder: string) => readonly string[], (folder: string) => Partial<StartOptions>]
>([
  ["sync CHECKOUT_DIR", (folder) => ["sync", folder], () => ({})],
  [
    "sync with CLUSTER_CHECKOUT_DIR",
    () => ["sync"],
    (folder) => ({ environment: { CLUSTER_CHECKOUT_DIR: folder } }),
  ],
  ["sync in it", () => ["sync"], (folder) => ({ cwd: folder })],
  ["run --sync-dir", (folder) => ["run", "--sync-dir", folder, "true"], () => ({})],
])(
  "a folder that is no checkout ends with 2 and names what was looked for: %s",
  async (_what, words, options) => {
    const folder = join(cloud().folder, "no checkout");
    await mkdir(folder, { recursive: true });
    const refused = await cloud().run(words(folder), options(folder));
    expect(refused.stderr).toContain(`${folder} is neither a platform's folder`);
    expect(refused.stderr).toContain(
      "neither packages/integration-test/extra nor packages/dcos-integration-test/extra",
    );
    expect(refused.stderr).toContain("[bad-usage]");
    expect(refused).toMatchObject({ status: 2, stdout: "" });
  },
);

test("a checkout whose links leave it is refused before anything is asked, every one of them named", async () => {
  const folder = join(cloud().folder, "leaking");
  await Bun.$`cp -R ${state.oss} ${folder}`.quiet();
  const extra = join(folder, "packages/integration-test/extra");
  await symlink("/etc/hostname", join(extra, "test_stolen.py"));
  await symlink("../../../..", join(folder, "packages/bootstrap/extra/cluster_internal_utils/up"));
  const asked = async (): Promise<number> =>
    ((await cloud().control("requests")) as { readonly total: number }).total;
  const before = await asked();
  for (const words of [
    ["sync", folder],
    ["run", "--sync-dir", folder, "true"],
  ]) {
    const refused = await cloud().run(words);
    expect(refused.stderr).toContain(join(extra, "test_stolen.py"));
    expect(refused.stderr).toContain("cluster_internal_utils/up");
    expect(refused.stderr).toContain("[bad-usage]");
    expect(refused).toMatchObject({ status: 2, stdout: "" });
  }
  expect(await asked()).toBe(before);
});

// Shows R70.
test("an enterprise checkout goes to an enterprise cluster as it is", async () => {
  const { masters } = await sync(["-c", "paid", state.enterprise!]);
  expect(masters).toMatchObject([{ node: "master_0", files: 3, sentFiles: 3 }]);
  expect(await filesOn("paid", "master_0", testsFolder)).toEqual([
    "./conftest.py",
    "./test_paid.py",
  ]);
  expect(await filesOn("paid", "master_0", libraryFolder)).toContain("./paid.py");
});

test("an open source checkout stands beside the enterprise tests, and touches no library", async () => {
  const { masters } = await sync(["-c", "paid", state.oss!]);
  expect(masters).toMatchObject([{ node: "master_0", files: 5, sentFiles: 5 }]);
  expect(await filesOn("paid", "master_0", testsFolder)).toEqual([
    "./conftest.py",
    "./open_source_tests/deep/er/data.txt",
    "./open_source_tests/run-all",
    "./open_source_tests/test_late.py",
    "./open_source_tests/test_oss.py",
    "./test_paid.py",
    "./util/tool.py",
  ]);
  expect((await cloud().run(["run", "-c", "paid", "cat conftest.py"])).stdout).toBe(
    "# paid conftest\n",
  );
  expect(await filesOn("paid", "master_0", libraryFolder)).not.toContain("./cli.py");
  expect(sent(await sync(["-c", "paid", state.oss!]))).toEqual([0]);
});

// Shows R58.
test("wait ends with 1 and shows the log of a node whose installer failed", async () => {
  const waited = await cloud().run(["wait", "-c", "broken", "--timeout", "5m"]);
  for (const text of ["master_0", "not today", "[install-failed]"])
    expect(waited.stderr).toContain(text);
  expect(waited).toMatchObject({ status: 1, stdout: "" });
});

test("a cluster that isn't installed ends with 1 and says so", async () => {
  const refused = await cloud().run(["sync", "-c", "broken", state.oss!]);
  expect(refused.stderr).toContain("master_0");
  expect(refused.stderr).toContain("[not-installed]");
  expect(refused).toMatchObject({ status: 1, stdout: "" });
});

test("no such cluster ends with 3", async () => {
  expect(await cloud().run(["sync", "-c", "nobody", state.oss!])).toMatchObject({
    status: 3,
    stdout: "",
  });
});

test("a master whose disk is full keeps its former files and is named; the others have the new ones", async () => {
  const active = "/opt/cluster/active";
  const small = `cp -a ${active} /root/active && mount -t tmpfs -o size=400k tmpfs ${active} && cp -a /root/active/. ${active}`;
  expect(await cloud().run(["run", "--no-test-env", "--node", "master_1", small])).toMatchObject({
    status: 0,
  });
  const before = await filesOn("default", "master_1", testsFolder);
  await Bun.write(
    join(state.oss!, "packages/integration-test/extra/large.bin"),
    Buffer.alloc(1_000_000, 7),
  );
  const full = await cloud().run(["sync", state.oss!]);
  expect(full.stderr).toContain("master_1: no space is left");
  expect(full.stderr).toContain("[transfer-failed]");
  expect(full).toMatchObject({ status: 1, stdout: "" });
  expect(await filesOn("default", "master_1", testsFolder)).toEqual(before);
  expect(await filesOn("default", "master_2", testsFolder)).toContain("./large.bin");
});

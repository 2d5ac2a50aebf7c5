/**
 * Nodes, artifacts, checkouts and files that send far more than anybody needs, in the form that costs most. The
 * programs end, and an interrupt ends them in the middle of it, with nothing left.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, open, readdir, readFile, symlink } from "node:fs/promises";
import { join } from "node:path";
import { clusterNames, makeCheckout } from "./support/checkout.ts";
import { writeTalkingArtifact } from "./support/talking-artifact.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const state: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => state.cloud!;
const createWords =
  "create -v --variant enterprise --linux-distribution debian-12 --agents 0 --public-agents 0".split(
    " ",
  );

beforeAll(async () => {
  state.cloud = await startTestCloud("container");
  const { folder } = cloud();
  await Bun.write(join(folder, "license.txt"), "license");
  const artifact = await writeTalkingArtifact(folder, "exit 0");
  const created = await cloud().run([
    ...createWords,
    "--license-key",
    join(folder, "license.txt"),
    artifact,
  ]);
  expect(created.status, created.stderr).toBe(0);
});

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
});

async function onMaster(line: string): Promise<void> {
  const ran = await cloud().run(["run", "--no-test-env", line]);
  expect(ran.status, ran.stderr).toBe(0);
}

/** A folder with this many links on the master. */
const linksOnMaster = (count: number): Promise<void> =>
  onMaster(`python3 -c "
import os
os.mkdir('/links-${count}')
for n in range(${count}): os.symlink('x', '/links-${count}/l%d' % n)"`);

test("a fetched folder with 20,000 links arrives", async () => {
  await linksOnMaster(20_000);
  const target = join(cloud().folder, "fetched", "links");
  const ran = await cloud().run([
    "run",
    "--no-test-env",
    "--fetch",
    `/links-20000:${target}`,
    "true",
  ]);
  expect(ran.status, ran.stderr).toBe(0);
  expect(await readdir(target)).toHaveLength(20_000);
});

test("Ctrl-C while a folder with 90,000 links is fetched leaves nothing", async () => {
  await linksOnMaster(90_000);
  const parent = join(cloud().folder, "interrupted");
  const running = cloud().start([
    "run",
    "-v",
    "--no-test-env",
    "--fetch",
    `/links-90000:${parent}/links`,
    "true",
  ]);
  await running.said("Fetch …");
  running.interrupt("SIGINT");
  const ended = await running.ended;
  expect(ended.signal, ended.stderr).toBe("SIGINT");
  expect(await readdir(parent).catch(() => [])).toEqual([]);
});

test.each([
  ["ends", `head -c 600000 /dev/zero | tr '\\0' .; echo x; exit 1`],
  ["is interrupted", `head -c 600000 /dev/zero | tr '\\0' .; echo x; sleep 1000`],
])(
  "a create whose artifact prints 600,000 dots as its version %s, and leaves no machine",
  async (how, lines) => {
    const path = join(cloud().folder, "dots.sh");
    await Bun.write(path, `#!/bin/bash\n# variant: enterprise\n${lines}\n`);
    const before = await cloud().machines();
    const running = cloud().start([...createWords, "-c", "dots", path]);
    if (how === "is interrupted") {
      await running.said("Check version …");
      running.interrupt("SIGINT");
    }
    const ended = await running.ended;
    const expected =
      how === "ends" ? { status: 1, signal: undefined } : { status: undefined, signal: "SIGINT" };
    expect({ status: ended.status, signal: ended.signal }, ended.stderr).toEqual(expected);
    if (how === "ends") expect(ended.stderr).toContain("[artifact-invalid]");
    expect((await cloud().machines()).map(({ instanceId }) => instanceId)).toEqual(
      before.map(({ instanceId }) => instanceId),
    );
  },
);

test("import refuses a file that is nested deeply, one without an end, and ends when it is interrupted", async () => {
  const path = join(cloud().folder, "nested.json");
  const nested = "[".repeat(200_000) + "]".repeat(200_000);
  await Bun.write(path, `{"format":"cluster-e2e-hand-over","formatVersion":1,"x":${nested}}`);
  for (const file of [path, "/dev/zero"]) {
    const ended = await cloud().run(["import", file]);
    expect(ended.status, ended.stderr).toBe(2);
    expect(ended.stderr).toContain("[bad-usage]");
  }
  const pipe = join(cloud().folder, "pipe");
  await Bun.$`mkfifo ${pipe}`.quiet();
  const running = cloud().start(["import", pipe]);
  // Opens when the program does.
  await using writer = await open(pipe, "w");
  await writer.write("{");
  running.interrupt("SIGINT");
  expect((await running.ended).signal).toBe("SIGINT");
});

test("sync refuses a checkout with more paths than anybody can follow, and can be interrupted", async () => {
  const folder = await deepCheckout(40);
  const ended = await cloud().run(["sync", folder]);
  expect(ended.status, ended.stderr).toBe(2);
  expect(ended.stderr).toContain("more than 100000 files and folders");
  // Before the command itself begins, while its argument is read, and afterwards.
  for (const words of [["sync", folder], ["sync"]]) {
    const running = cloud().start(words, { cwd: folder });
    await worked(running.processId);
    running.interrupt("SIGINT");
    expect((await running.ended).signal).toBe("SIGINT");
  }
});

/** Resolves when the process has used 0.3 s of processor time. Its start takes a tenth of that. */
async function worked(processId: number): Promise<void> {
  for (;;) {
    const fields = (await readFile(`/proc/${processId}/stat`, "utf8")).split(" ");
    if (Number(fields[13]) + Number(fields[14]) >= 30) return;
    await Bun.sleep(10);
  }
}

/** A checkout with twice as many paths at each level as at the one before. */
async function deepCheckout(levels: number): Promise<string> {
  const folder = join(cloud().folder, `checkout-${levels}`);
  await makeCheckout(folder, "oss", { tests: { "test_a.py": "" }, library: {} }, clusterNames);
  const tests = join(folder, "packages", clusterNames.tests, "extra");
  for (let level = 0; level <= levels; level += 1) {
    await mkdir(join(tests, `f${level}`));
    if (level === levels) break;
    for (const name of ["a", "b"])
      await symlink(join("..", `f${level + 1}`), join(tests, `f${level}`, name));
  }
  return folder;
}

// The last test: afterwards no command can read this cluster's secrets, which a wait needs before it shows what a check says.
test("a wait whose first master sends 20,000 secrets that begin alike ends, and Ctrl-C ends it", async () => {
  const check = `#!/bin/sh\necho '{"checks": {"member": {"status": 1, "output": "is missing"}}}'\nexit 1\n`;
  await onMaster(`mkdir -p /opt/cluster/bin /opt/cluster/etc && echo '{}' >/opt/cluster/etc/version.json
echo ${Buffer.from(check).toString("base64")} | base64 -d >/opt/cluster/bin/check; chmod 755 /opt/cluster/bin/check`);
  // Only files of secrets are read up to so many bytes.
  const head = `#!/bin/sh\n[ \${#2} -gt 4 ] || exec /usr/bin/head.real "$@"\nexec cat /secrets\n`;
  await onMaster(`seq -f secret-%06.0f 20000 >/secrets; mv /usr/bin/head /usr/bin/head.real
echo ${Buffer.from(head).toString("base64")} | base64 -d >/usr/bin/head; chmod 755 /usr/bin/head`);
  const limited = await cloud().run(["wait", "--timeout", "3s"]);
  expect(limited.signal, limited.stderr).toBeUndefined();
  const running = cloud().start(["wait", "-vv", "--timeout", "30m"]);
  await running.said("e2e-secrets");
  running.interrupt("SIGINT");
  const ended = await running.ended;
  expect(ended.signal, ended.stderr).toBe("SIGINT");
});

/** What `run --watch` and `once` notice on real containers, at once and on the right node, and what they don't count. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../support/until.ts";
import type { Running } from "./support/executable.ts";
import {
  type TestContainers,
  docker,
  nodeImage,
  startTestContainers,
} from "./support/test-containers.ts";

const state: { containers?: TestContainers } = {};
const containers = (): TestContainers => state.containers!;
const platform = (): string => join(containers().folder, "platform");
const id = (): string => containers().id("watch");

const description = `name: watched
version: "1.0"
logs:
  errors: ["quorum*lost", "fatal: "]
  allowed: ["fatal: harmless"]
`;
const programs = {
  install: "#!/bin/sh\n",
  check: "#!/bin/sh\n",
  watch: "#!/bin/sh\n[ ! -e /tmp/stopped ] || { echo the meter stands still; exit 3; }\n",
};

beforeAll(async () => {
  state.containers = await startTestContainers();
  await mkdir(platform());
  await writeFile(join(platform(), "platform.yaml"), description);
  for (const [name, text] of Object.entries(programs))
    await writeFile(join(platform(), name), text, { mode: 0o755 });
  const size = ["--masters", "1", "--agents", "2", "--public-agents", "0", "--memory", "300M"];
  const words = ["create", "--wait", "-c", id(), ...size, "--node-image", nodeImage, platform()];
  const created = await containers().run(words);
  expect(created.status, created.stderr).toBe(0);
});

afterAll(async () => {
  await state.containers?.run(["destroy", "-c", id(), "--yes"]);
  await state.containers?.[Symbol.asyncDispose]();
});

const on = async (node: string, line: string): Promise<void> => {
  const ran = await containers().run(["run", "-c", id(), "--no-test-env", "--node", node, line]);
  expect(ran.status, ran.stderr).toBe(0);
};

/** A watched command that runs until it is told to end. */
async function watched(...words: readonly string[]) {
  const file = `/tmp/${crypto.randomUUID()}`;
  const line = `touch ${file}; while [ -e ${file} ]; do sleep 0.2; done`;
  const run = ["run", "-c", id(), "--watch", "--no-test-env", "--output", "json", ...words, line];
  const running = containers().start(run);
  await until("the command runs", async () => {
    await on("master_0", `test -e ${file}`);
    return true;
  });
  return { running, end: () => on("master_0", `rm ${file}`) };
}

async function endOf(running: Running) {
  const { status, stdout, stderr } = await running.ended;
  const { noticed } = JSON.parse(stdout) as { readonly noticed: readonly Readonly<Noticed>[] };
  return { status, stderr, noticed };
}

interface Noticed {
  readonly node: string;
  readonly kind: string;
  readonly text: string;
}

const eater = `x=$(head -c 600m /dev/zero | tr "\\0" x)`;
/** systemd-run makes one `$` of two. */
const signs = [
  [
    `systemd-run --quiet --unit=eater sh -c '${eater}'`,
    "oom",
    "out of memory: the kernel has killed at least one process",
  ],
  [
    `systemd-run --quiet --unit=crashing -p LimitCORE=infinity sh -c 'kill -ABRT $$$$'`,
    "core-dump",
    "core dump: systemd: crashing.service: Main process exited, code=dumped",
  ],
  [
    "systemd-run --quiet --unit=failing false",
    "failed-unit",
    "failed unit: systemd: failing.service: Failed with result 'exit-code'",
  ],
  [
    "logger -t app 'fatal: harmless'; logger -t app 'the quorum is now lost'",
    "error-line",
    "error line: app: the quorum is now lost",
  ],
  [
    "touch /tmp/stopped",
    "watch",
    "failed watch: ./watch exited with status 3: the meter stands still",
  ],
] as const;

test("what goes wrong is printed while the command runs, with its node, and fails it", async () => {
  const { running, end } = await watched();
  for (const [line, , shown] of signs) {
    await on("agent_0", line);
    await running.said(new RegExp(`Warning: agent_0, \\d\\d:\\d\\d:\\d\\d UTC: ${shown}`));
  }
  const { nodes } = await containers().inspect(id());
  const restarted = nodes.find(({ reference }) => reference === "agent_1");
  await docker(["restart", "--time", "1", restarted!.id]);
  await running.said(
    /Warning: agent_1, \d\d:\d\d:\d\d UTC: restart of the node: the node has booted/,
  );
  await end();
  const { status, stderr, noticed } = await endOf(running);
  expect(status).toBe(255);
  expect(stderr).toContain("[trouble-noticed]");
  expect(stderr).not.toContain("harmless");
  const kindsOf = (node: string): readonly string[] =>
    [...new Set(noticed.filter((each) => each.node === node).map(({ kind }) => kind))].toSorted();
  expect(kindsOf("agent_0")).toEqual(signs.map(([, kind]) => kind).toSorted());
  expect(kindsOf("agent_1")).toContain("reboot");
  expect(kindsOf("master_0")).toEqual([]);
  await on("agent_0", "rm /tmp/stopped");
});

test("what our own faults and power changes explain, and what --ignore names, doesn't count", async () => {
  const fault = ["fault", "process", "agent_0", "--unit", "steady", "-c", id(), "--for", "2s"];
  await on("agent_0", "systemd-run --quiet --unit=steady sleep 100000");
  const { running, end } = await watched("--ignore", "failed-unit=ignored.service");
  for (const words of [
    [...fault, "--wait"],
    ["node", "stop", "agent_1", "-c", id()],
    ["node", "start", "agent_1", "-c", id()],
  ]) {
    const ran = await containers().run(words);
    expect(ran.status, ran.stderr).toBe(0);
  }
  await on("master_0", "systemd-run --quiet --unit=ignored false");
  await end();
  const { status, stderr, noticed } = await endOf(running);
  expect(noticed, stderr).toEqual([]);
  expect(status, stderr).toBe(0);
  const report = join(containers().folder, "report.html");
  await containers().run(["report", report, "-c", id()]);
  const html = await readFile(report, "utf8");
  expect(html).toContain("steady.service");
});

test("once fails as well, and its JUnit file has what was noticed", async () => {
  const junit = join(containers().folder, "watch.xml");
  const size = ["--masters", "1", "--agents", "0", "--public-agents", "0"];
  const words = ["-c", containers().id("once"), ...size, "--node-image", nodeImage];
  const line = "logger -t app 'fatal: no quorum'";
  const files = ["--junit", junit, "--no-test-env", platform()];
  const ran = await containers().run(["once", ...words, ...files, "--", line]);
  expect(ran.status, ran.stderr).toBe(255);
  expect(ran.stderr).toMatch(/master_0, \d\d:\d\d:\d\d UTC: error line: app: fatal: no quorum/);
  expect(await readFile(junit, "utf8")).toContain("app: fatal: no quorum");
});

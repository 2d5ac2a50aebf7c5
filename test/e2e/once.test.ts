/**
 * `once` on containers, with a platform that is a folder: the command's exit code, files, logs and a report, and whatever happens, nothing else is
 * left.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { junitOutcomes, readJunit } from "../support/junit.ts";
import { until } from "../support/until.ts";
import { writeEmptyPlatform } from "./support/empty-platform.ts";
import { docker, nodeImage, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const state: { containers?: TestContainers; empty?: string } = {};
const containers = (): TestContainers => state.containers!;
const empty = (): string => state.empty!;
const platform = join(import.meta.dir, "support", "meter");

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.empty = await writeEmptyPlatform(containers().folder);
});

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

const path = (name: string): string => join(containers().folder, name);
const onceWords = (...words: readonly string[]) => [
  "once",
  "--node-image",
  nodeImage,
  "--agents",
  "1",
  ...words,
];
/** On one node, which is ready at once. */
const onceOnOne = (...words: readonly string[]) => [
  ..."once --masters 1 --agents 0 --public-agents 0 --node-image".split(" "),
  nodeImage,
  ...words,
];
const once = (id: string, ...words: readonly string[]) =>
  containers().run(onceWords("-c", id, ...words));
/** The folders of clusters that once existed or still do. */
const foldersOf = async (id: string): Promise<readonly string[]> =>
  (await readdir(containers().stateFolder)).filter((name) => name.startsWith(id));

const testNames = [
  "The cluster is created",
  "master_0 is ready",
  "agent_0 is ready",
  "The platform is ready",
  "The command succeeds",
];

test("a success leaves what the command brought back, and a report", async () => {
  const id = containers().id("success");
  const words = [
    "--fetch",
    `/tmp/result:${path("result")}`,
    "--junit",
    path("success.xml"),
    "--env",
    "A=b c",
    platform,
  ];
  const ran = await once(id, ...words, "--", 'echo "$A" | tee /tmp/result');
  expect({ status: ran.status, stdout: ran.stdout }, ran.stderr).toEqual({
    status: 0,
    stdout: "b c\n",
  });
  expect(await readFile(path("result"), "utf8")).toBe("b c\n");
  const outcomes = junitOutcomes(await readFile(path("success.xml")));
  expect(outcomes).toEqual(Object.fromEntries(testNames.map((name) => [name, "passed"])));
  expect(await containers().things(id)).toEqual([]);
  expect(await foldersOf(id)).toEqual([]);
});

test("a command that fails gives its exit code, and the logs are saved", async () => {
  const id = containers().id("failing");
  const files = ["--junit", path("failing.xml"), "--report", path("failing.html")];
  const words = ["--logs-dir", path("logs"), ...files, platform];
  const ran = await once(id, ...words, "--", "echo '  the meter is broken' >&2; exit 42");
  expect({ status: ran.status, stdout: ran.stdout }, ran.stderr).toEqual({
    status: 42,
    stdout: "",
  });
  expect(await readFile(join(path("logs"), "agent_0.install.log"), "utf8")).toContain(
    "reading the meter on agent_0",
  );
  expect(await readFile(path("failing.xml"), "utf8")).toContain(
    'message="The command exited with status 42."',
  );
  const page = await readFile(path("failing.html"), "utf8");
  const parts = [`Cluster ${id}: failed`, "exit 42", "master_0: status 42", "agent_0"];
  for (const part of [...parts, "<pre>  the meter is broken</pre>"]) expect(page).toContain(part);
  expect(await containers().things(id)).toEqual([]);
});

test("a node that ends during the command is no reason to inspect the cluster, which is gone", async () => {
  const id = containers().id("off");
  const words = ["-c", id, "--logs-dir", path("off"), empty(), "--"];
  const ran = await containers().run(onceOnOne(...words, "systemctl poweroff; sleep 60"));
  expect({ status: ran.status, stdout: ran.stdout }, ran.stderr).toEqual({
    status: 255,
    stdout: "",
  });
  expect(ran.stderr).toContain(
    "Look at the saved logs, or pass --keep-on-failure to look at the node.",
  );
  expect(ran.stderr).not.toContain("inspect");
  expect(await containers().things(id)).toEqual([]);
});

test("an installation that fails runs no command; --keep-on-failure keeps the cluster, which no other once removes", async () => {
  const id = containers().id("broken");
  const extra = path("extra.yaml");
  await Bun.write(extra, "agent: broken\n");
  const words = [
    "--extra-config",
    extra,
    "--junit",
    path("broken.xml"),
    "--keep-on-failure",
    platform,
  ];
  const ran = await once(id, ...words, "--", "echo never");
  expect({ status: ran.status, stdout: ran.stdout }, ran.stderr).toEqual({ status: 1, stdout: "" });
  expect(ran.stderr).toContain("[install-failed]");
  const report = await readFile(path("broken.xml"));
  const { "master_0 is ready": _byLuck, ...outcomes } = junitOutcomes(report);
  expect(outcomes).toEqual({
    "The cluster is created": "passed",
    "agent_0 is ready": "not-ready",
    "The platform is ready": "install-failed",
    "The command succeeds": "skipped",
  });
  const [failure] = readJunit(report).filter(
    ({ attributes }) => attributes["type"] === "install-failed",
  );
  expect(failure?.text).toContain("]]> &amp; <failure/>");
  expect(failure?.text).toContain("the meter is broken");
  const hostname = await containers().run([
    "run",
    "-c",
    id,
    "--no-test-env",
    "--node",
    "agent_0",
    "hostname",
  ]);
  expect(hostname.stdout, hostname.stderr).toBe("agent-0\n");
  const again = await once(id, platform, "--", "true");
  expect(again.stderr).toContain("[cluster-exists]");
  expect(await containers().things(id)).toHaveLength(3);
  expect((await containers().run(["destroy", "-c", id])).status).toBe(0);
  expect(await containers().things(id)).toEqual([]);
});

test("what fails before anything is created is in the report too", async () => {
  const id = containers().id("missing");
  const words = [
    "--variant",
    "oss",
    "--junit",
    path("missing.xml"),
    "http://127.0.0.1:1/artifact.sh",
  ];
  const ran = await once(id, ...words, "--", "echo never");
  expect({ status: ran.status, stdout: ran.stdout }, ran.stderr).toEqual({ status: 1, stdout: "" });
  expect(junitOutcomes(await readFile(path("missing.xml")))).toEqual({
    "The cluster is created": "artifact-unreachable",
    "The platform is ready": "skipped",
    "The command succeeds": "skipped",
  });
  expect(await containers().things(id)).toEqual([]);
});

test.each([
  ["Boot …", "SIGINT"],
  ["is ready.", "SIGTERM"],
] as const)("a cancellation at %p leaves nothing but logs", async (said, signal) => {
  const id = containers().id("cancelled");
  const running = containers().start(
    onceOnOne("-c", id, "--logs-dir", path(signal), empty(), "--", "sleep 600"),
  );
  await running.said(said);
  await until("the master's console has text", async () => {
    const master = (await containers().things(id)).find((name) => name.includes("master"));
    return master !== undefined && (await docker(["logs", master])) !== "";
  });
  running.interrupt(signal);
  const ended = await running.ended;
  expect({ status: ended.status, signal: ended.signal }, ended.stderr).toEqual({
    status: undefined,
    signal,
  });
  expect(await containers().things(id)).toEqual([]);
  expect(await readdir(path(signal))).toContain("master_0.console.txt");
});

test("what a killed once leaves the next one removes", async () => {
  const killed = containers().start(onceOnOne(empty(), "--", "sleep 600"));
  await killed.said("is ready.");
  killed.interrupt("SIGKILL");
  const [, id = ""] = /Cluster "(once-[0-9a-f]{8})" is ready/.exec((await killed.ended).stderr)!;
  try {
    expect(await containers().things(id)).toHaveLength(2);
    const next = await containers().run(onceOnOne(empty(), "--", "true"));
    expect(next.status, next.stderr).toBe(0);
    expect(await containers().things(id)).toEqual([]);
  } finally {
    await containers().run(["destroy", "-c", id]);
  }
});

describe("with shards", () => {
  const source = (): string => containers().id("source");
  const shards = (id: string, count: number, ...words: readonly string[]) => [
    ...`once -c ${id} --from ${source()}:installed --shards ${count}`.split(" "),
    ...words,
  ];
  const left = async (id: string): Promise<readonly string[]> =>
    (
      await Promise.all([1, 2, 3].map(async (number) => containers().things(`${id}-${number}`)))
    ).flat();

  beforeAll(async () => {
    const made = await containers().run([
      "create",
      "--node-image",
      nodeImage,
      "--agents",
      "1",
      "--wait",
      "-c",
      source(),
      platform,
    ]);
    if (made.status !== 0) throw new Error(made.stderr);
    await containers().run(["snapshot", "create", "installed", "-c", source()]);
  });

  afterAll(async () => {
    await containers().run(["destroy", "--yes", "-c", source()]);
  });

  test("copies run the command at once, with files of their own, and the highest exit code counts", async () => {
    const id = containers().id("shards");
    const words = [
      "--fetch",
      `/tmp/result:${path("shards/result")}`,
      "--logs-dir",
      path("shards/logs"),
    ];
    const command =
      'echo "$CLUSTER_SHARD of $CLUSTER_SHARDS" | tee /tmp/result; exit $((CLUSTER_SHARD * 10 - 10))';
    const ran = await containers().run(
      shards(id, 3, ...words, "--junit", path("shards/junit.xml"), "--", command),
    );
    expect({ status: ran.status, lines: ran.stdout.split("\n").toSorted() }, ran.stderr).toEqual({
      status: 20,
      lines: ["", "shard_1: 1 of 3", "shard_2: 2 of 3", "shard_3: 3 of 3"],
    });
    expect(ran.stderr).toContain("2 of 3 shards failed: shard_2, shard_3.");
    for (const number of [1, 2, 3]) {
      expect(await Bun.file(path(`shards/shard_${number}/result`)).text()).toBe(`${number} of 3\n`);
      const outcomes = junitOutcomes(await readFile(path(`shards/shard_${number}/junit.xml`)));
      expect(outcomes).toMatchObject({
        "The command succeeds": number === 1 ? "passed" : "CommandFailed",
      });
      const logs = await readdir(path(`shards/logs/shard_${number}`));
      if (number === 1) expect(logs).toEqual([]);
      else expect(logs).toContain("master_0.console.txt");
    }
    expect(await left(id)).toEqual([]);
    expect(await foldersOf(`${id}-1`)).toEqual([]);
  });

  test("several nodes of several shards are told apart", async () => {
    const id = containers().id("nodes");
    const words = ["--fetch", `/tmp/result:${path("nodes/result")}`, "--node", "all"];
    const ran = await containers().run(shards(id, 2, ...words, "--", "hostname | tee /tmp/result"));
    expect(ran.status, ran.stderr).toBe(0);
    const names = [1, 2].flatMap((number) => ["agent-0", "master-0"].map((host) => [number, host]));
    expect(ran.stdout.split("\n").toSorted()).toEqual([
      "",
      ...names.map(
        ([number, host]) => `shard_${number} ${String(host).replace("-", "_")}: ${host}`,
      ),
    ]);
    expect(await Bun.file(path("nodes/shard_2/agent_0/result")).text()).toBe("agent-0\n");
    expect(await left(id)).toEqual([]);
  });

  test.each(["SIGINT", "SIGTERM"] as const)(
    "after %p nothing is left of any copy",
    async (signal) => {
      const id = containers().id(`shards-${signal.toLowerCase()}`);
      const running = containers().start(shards(id, 2, "--", "sleep 600"));
      await running.said("is ready.");
      running.interrupt(signal);
      const ended = await running.ended;
      expect({ status: ended.status, signal: ended.signal }, ended.stderr).toEqual({
        status: undefined,
        signal,
      });
      expect(await left(id)).toEqual([]);
    },
  );

  test("what killed shards leave the next once removes", async () => {
    const words = (...more: readonly string[]) => [
      "once",
      "--from",
      `${source()}:installed`,
      ...more,
    ];
    const killed = containers().start(words("--shards", "2", "--", "sleep 600"));
    await killed.said("is ready.");
    killed.interrupt("SIGKILL");
    const [, id = ""] = /Cluster "(once-[0-9a-f]{8})-\d" is ready/.exec(
      (await killed.ended).stderr,
    )!;
    try {
      expect((await left(id)).length).toBeGreaterThan(0);
      const next = await containers().run(words("--", "true"));
      expect(next.status, next.stderr).toBe(0);
      expect(await left(id)).toEqual([]);
    } finally {
      for (const number of [1, 2]) await containers().run(["destroy", "-c", `${id}-${number}`]);
    }
  });
});

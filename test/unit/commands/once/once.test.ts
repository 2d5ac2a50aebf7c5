import { expect, test } from "bun:test";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Backend, BackendKind } from "../../../../src/backend/contract.ts";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../../src/backend/vm/vm-kind.ts";
import { Problems } from "../../../../src/cli/options/problems.ts";
import { checkSaving } from "../../../../src/commands/once/once-options.ts";
import { CommandFailed } from "../../../../src/commands/once/execute-once.ts";
import { ofShard } from "../../../../src/commands/once/execute-shards.ts";
import { tryOf } from "../../../../src/commands/once/shrink-chaos.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { runCommandLine } from "../../../support/run-command.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** Runs the command with a backend that can do nothing. */
const once = async (
  words: string,
  kind: BackendKind = vmKind,
  environment: Readonly<Record<string, string>> = {},
) =>
  runCommandLine(`once ${words} -- true`, {
    kind,
    backend: { name: kind.name },
    nowMs: 0,
    environment,
  });

test.each([
  ["--from a:b --recipient age1", "--recipient: only allowed with --save-on-failure"],
  ["--from a:b --without-base", "--without-base: only allowed with --save-on-failure"],
  [
    "--from a:b --save-on-failure /tmp/x --junit /tmp/x",
    "--save-on-failure: another option names the same file",
  ],
  [
    `--from a:b --save-on-failure ${import.meta.dir}`,
    "--save-on-failure: it is not a regular file",
  ],
  ["--from a:b --save-on-failure new/", "--save-on-failure: new/ is a folder: name a file in it"],
  ["--from a:b --report new/", "--report: new/ is a folder: name a file in it"],
  ["--from a:b --junit=", "--junit: the value is empty"],
  ["--from a:b --cache /tmp/x", "--cache: cannot be combined with --from"],
  [
    "--cache /tmp/x --save-on-failure /tmp/x example:etcd",
    "--cache: another option names the same file",
  ],
  ["--cache /tmp/x --junit /tmp/x example:etcd", "--cache: another option names the same file"],
  [
    "--from a:b --report /tmp/x --junit-from /tmp/x",
    "--report: another option names the same file",
  ],
  [
    "--from a:b --report /tmp/y --junit /tmp/x --junit-from /tmp/x",
    "--junit: another option names the same file",
  ],
  ["--from a:b --junit /tmp/x --fetch a:/tmp/x", "--junit: another option names the same file"],
  ["--from a:b --report /tmp/x --fetch a:/tmp/x", "--report: another option names the same file"],
  [
    "--save-on-failure /tmp/x --node agent_0 --fetch a:/tmp/x example:etcd",
    "--save-on-failure: another option names the same file",
  ],
  ["--cache /tmp/x --fetch a:/tmp/x example:etcd", "--cache: another option names the same file"],
  ["--shards 2 example:etcd", "--shards: requires --from"],
  ["--from a:b --shards 0", '--shards: "0" is not a whole number from 1 to 32'],
  [
    "--copy-to-master /etc/hosts:/b --copy-to-master /etc/hosts:/b example:etcd",
    "two of them write /b",
  ],
  [
    `--from a:b --shards 9 -c ${"a".repeat(62)}`,
    `--shards: "${"a".repeat(62)}-9" is not a cluster id`,
  ],
])("%s is refused", async (words, problem) => {
  expect((await failureOf(once(words))).message).toContain(problem);
});

test("a cache never contains the user's own key", async () => {
  await using folder = await scratchFolder();
  const key = join(folder.path, "key");
  await writeFile(key, generateKeyPair("own").privateKey, { mode: 0o600 });
  const failure = await failureOf(once(`--cache /tmp/x --ssh-key ${key} example:etcd`));
  expect(failure.message).toContain("--cache: the file would contain the key");
});

test("a cache that would lack a folder of this computer is refused", async () => {
  const failure = await failureOf(
    once("--cache /tmp/x --custom-volume /tmp:/data example:etcd", containerKind),
  );
  expect(failure.message).toContain("--cache: cannot be combined with --custom-volume");
});

test("a cache, a report and a saved cluster may be in different files", () => {
  const problems = new Problems("");
  const files = { cache: "/tmp/a", junit: "/tmp/b", saveOnFailure: "/tmp/c" };
  checkSaving(
    containerKind,
    { ...files, customVolumes: [] } as Parameters<typeof checkSaving>[1],
    problems,
  );
  expect(problems.all).toEqual([]);
});

test("what several nodes bring is in folders of their names", () => {
  const problems = new Problems("");
  const given = { junit: "/tmp/x", fetch: [{ remote: "a", local: "/tmp/x" }], customVolumes: [] };
  for (const node of [["agents"], ["agent_0", "agent_1"]])
    checkSaving(containerKind, { ...given, node }, problems);
  expect(problems.all).toEqual([]);
});

test("only backends whose clusters become files save them after a failure", async () => {
  const failure = await failureOf(once("--save-on-failure /tmp/x example:etcd", cloudKind));
  expect(failure.message).toContain("--save-on-failure");
});

test.each(["shard_1", "shard_2"])(
  "a shard whose files could not be written is refused: %s",
  async (shard) => {
    await using folder = await scratchFolder();
    await Bun.write(join(folder.path, shard), "");
    const failure = await failureOf(
      once(`--from a:b --shards 2 --fetch /remote:${folder.path}/local`),
    );
    expect(failure.message).toContain(`--fetch: ${folder.path}/${shard} is not a folder`);
  },
);

test("only backends whose clusters are copied have shards", async () => {
  const failure = await failureOf(once("--shards 2 example:etcd", cloudKind));
  expect(failure.message).toContain("--shards");
});

test("that age is missing is found out before anything is created", async () => {
  await using folder = await scratchFolder();
  await symlink(process.execPath, join(folder.path, "ssh"));
  const words = "--from a:b --save-on-failure /tmp/x --recipient age1";
  const failure = await failureOf(once(words, vmKind, { PATH: folder.path }));
  expect(failure).toMatchObject({
    id: "machine-not-set-up",
    message: expect.stringContaining("no age"),
  });
});

test("faults that the cluster could never have are refused before anything is created", async () => {
  await using folder = await scratchFolder();
  await symlink(process.execPath, join(folder.path, "ssh"));
  const environment = { PATH: folder.path, XDG_STATE_HOME: folder.path };
  const words = "--chaos seed=7 --masters 1 example:etcd";
  expect(await failureOf(once(words, vmKind, environment))).toMatchObject({
    id: "bad-usage",
    message: expect.stringContaining("no node that it can do without"),
  });
});

/** Runs shards of a snapshot of which no copy can be planned, for a reason of each. */
async function failingShards(reasons: readonly Error[], isInterrupted = false) {
  await using folder = await scratchFolder();
  await symlink(process.execPath, join(folder.path, "ssh"));
  const planCopy = async ({ clusterId }: { readonly clusterId: string }) => {
    throw reasons[Number(clusterId.split("-").at(-1)) - 1]!;
  };
  const find = async (id: string) => ({ ...exampleCluster([], "oss"), id });
  const removeExpired = async (): Promise<void> => {};
  const backend = {
    name: "vm",
    find,
    local: { removeExpired, snapshots: { planCopy } },
  } as unknown as Partial<Backend<unknown>>;
  const environment = { PATH: folder.path, XDG_STATE_HOME: folder.path };
  const line = `once --from a:b --shards ${reasons.length} -c many -- true`;
  const told: string[] = [];
  const failure: unknown = await failureOf(
    runCommandLine(line, { kind: vmKind, backend, nowMs: 0, environment, told, isInterrupted }),
  );
  return { failure, told };
}

test("after several shards have failed, the error is the one with the highest exit code", async () => {
  const full = new ClusterError("capacity-lacking", "The disk is full.");
  const gone = new ClusterError("snapshot-not-found", "There is no such snapshot.");
  const bug = new TypeError("x is not a function");
  for (const [one, other, worst] of [
    [full, gone, gone],
    [gone, full, gone],
    [bug, gone, bug],
  ] as const) {
    const { failure, told } = await failingShards([one, other]);
    expect(failure).toBe(worst);
    expect(told.at(-1)).toBe("2 of 2 shards failed: shard_1, shard_2.");
  }
});

test("what several shards fail for is told in full once", async () => {
  const full = () => new ClusterError("capacity-lacking", "The disk is full.");
  const { told } = await failingShards([full(), full()]);
  expect(told.filter((text) => text.includes("The disk is full."))).toHaveLength(1);
  expect(told.filter((text) => text.endsWith(": it failed for the same reason"))).toHaveLength(1);
});

test("shards that are interrupted report nothing but the interruption", async () => {
  const full = new ClusterError("capacity-lacking", "The disk is full.");
  const { failure, told } = await failingShards([full, full], true);
  expect([failure, told]).toEqual([new Error("interrupted"), []]);
});

test("a shard's report shows the test cases of the file that it fetched", () => {
  const fetch = [
    { remote: "a.xml", local: "/r/a.xml" },
    { remote: "all", local: "/r/all" },
  ];
  const junitFrom = ["/r/a.xml", "/r/all/b.xml", "/r/other.xml"];
  const given = { clusterId: "x", shards: 2, environment: [], fetch, junitFrom };
  expect(ofShard(given as unknown as Parameters<typeof ofShard>[0], 2).junitFrom).toEqual([
    "/r/shard_2/a.xml",
    "/r/shard_2/all/b.xml",
    "/r/other.xml",
  ]);
});

test("a command's failure names what went wrong on the nodes meanwhile", () => {
  expect(new CommandFailed(3, []).message).toBe("The command exited with status 3.");
  const trouble = { node: "agent_0", kind: "oom", what: "out of memory", text: "java" } as const;
  expect(new CommandFailed(3, [{ ...trouble, at: "2026-11-28T10:00:01.500Z" }]).message).toBe(
    "The command exited with status 3. While it ran, on the nodes:\n  agent_0, 10:00:01 UTC: out of memory: java",
  );
});

test("a try of a smaller plan leaves the files of the first run alone", () => {
  const chaos = { seed: 7, everyMs: 5_000, kinds: ["partition"], targets: ["one"] } as const;
  const files = { junit: "j", report: "r", logsDir: "l", saveOnFailure: "s", cache: "c" };
  const wanted = { ...files, fetch: [{ remote: "a", local: "b" }], summary: true, clusterId: "x" };
  const given = { ...wanted, chaos, shrink: 3 } as unknown as Parameters<typeof tryOf>[0];
  const none = Object.fromEntries(Object.keys(files).map((name) => [name, undefined]));
  const left = { ...none, clusterId: "x", fetch: [], summary: false } as unknown;
  expect(tryOf(given, [2]) as unknown).toEqual({
    ...(left as object),
    chaos: { ...chaos, only: [2] },
  });
  expect(tryOf(given, []) as unknown).toEqual(left);
});

import { readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import type { NamedText } from "../../../../src/backend/contract.ts";
import { saveFailureLogs, saveLogs } from "../../../../src/cluster/logs/save-logs.ts";
import { ClusterError } from "../../../../src/errors.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const ssh = { host: "127.0.0.1", port: 1, user: "root" };
const nodes = [
  { id: "i-0", role: "master", index: 0, state: "running", ssh },
  { id: "i-1", role: "agent", index: 0, state: "running", ssh },
] as unknown as readonly NodeRecord[];

interface Given {
  readonly console?: readonly NamedText[];
  /** Below the folder of the test; undefined: none is given. */
  readonly folder?: string;
  readonly onAsked?: () => void;
}

/** Saves the logs of a cluster whose key is on another machine. */
function save(
  state: string,
  { console = [], folder, onAsked }: Given,
  stop = new AbortController(),
) {
  const { progress, steps, told } = recordingProgress();
  const clock = scriptedClock(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
  const cluster = { ...exampleCluster(nodes, "oss"), directory: state };
  const consoleOutput = async (): Promise<readonly NamedText[]> => {
    onAsked?.();
    return console;
  };
  const request = { cluster, folder: folder === undefined ? undefined : join(state, folder) };
  const saving = saveLogs(
    { environment: {}, clock, progress, signal: stop.signal },
    { consoleOutput },
    request,
  );
  return { saving, steps, told };
}

const keyless = "The cluster's SSH key cannot be read: the file does not exist.";

test("nodes whose logs can't be read are named, once for each reason", async () => {
  await using scratch = await scratchFolder();
  const { saving, steps, told } = save(scratch.path, { folder: "logs" });
  const files = ["master_0.no-logs.txt", "agent_0.no-logs.txt"];
  expect(await saving).toEqual({ folder: join(scratch.path, "logs"), files });
  expect(steps).toEqual(["Collect logs: 2 files"]);
  expect(told.slice(1)).toEqual([`no logs from master_0, agent_0: ${keyless}`]);
  expect(await readFile(join(scratch.path, "logs", files[0]!), "utf8")).toBe(`${keyless}\n`);
});

test("if the cluster's secrets are not known, other logs may show them", async () => {
  await using scratch = await scratchFolder();
  const console = [{ name: "master_0.console.txt", text: "it booted\n" }];
  const { saving, told } = save(scratch.path, { folder: "logs", console });
  expect((await saving).files).toContain("master_0.console.txt");
  expect(told.at(-1)).toBe(
    `these logs may show secrets: cannot read from the first master what to mask (${keyless})`,
  );
});

test("without a folder, a new one that is named after the time is made for this user alone", async () => {
  await using scratch = await scratchFolder();
  const { folder } = await save(scratch.path, {}).saving;
  expect(folder).toBe(join(scratch.path, "logs-2026-01-02T03-04-05-678Z"));
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
});

test("a folder that can't be made is reported before anything is collected", async () => {
  await using scratch = await scratchFolder();
  await writeFile(join(scratch.path, "file"), "");
  const { saving, steps } = save(scratch.path, { folder: "file/logs" });
  const failure = await failureOf(saving);
  expect(failure.id).toBe("bad-usage");
  expect(failure.message).toStartWith(`Cannot save logs in ${scratch.path}/file/logs: ENOTDIR`);
  expect(steps).toEqual([]);
});

test("after an interruption, nothing is saved", async () => {
  await using scratch = await scratchFolder();
  const stop = new AbortController();
  const onAsked = (): void => stop.abort(new Error("interrupted"));
  const { saving, steps } = save(scratch.path, { folder: "logs", onAsked }, stop);
  expect((await failureOf(saving)).message).toBe("interrupted");
  expect([steps, await readdir(join(scratch.path, "logs"))]).toEqual([
    ["Collect logs: failed"],
    [],
  ]);
});

const lost = new ClusterError("connection-failed", "The node is gone.");

/** Saves the logs of a failed creation, whose nodes don't answer. Returns what the user saw, and the files. */
async function saveAfterFailure(
  own: readonly NodeRecord[],
  console: readonly NamedText[],
  folder = "",
) {
  await using scratch = await scratchFolder();
  const { progress, steps, told } = recordingProgress();
  const connections = { connect: async () => Promise.reject(lost) } as unknown as ConnectionPool;
  const directory = join(scratch.path, folder);
  const request = { cluster: exampleCluster(own, "oss"), connections, directory };
  await saveFailureLogs(
    { progress, signal: neverAborted },
    { consoleOutput: async () => console },
    request,
  );
  return {
    steps,
    told: told.map((line) => line.replace(scratch.path, "FOLDER")),
    files: await readdir(scratch.path),
  };
}

const booted = { name: "agent_0.console.txt", text: "it booted\n" };
const installed = { name: "agent_0.install.log", text: "a password\n" };
const saved = "The nodes' logs are in FOLDER";
const secrets =
  "these logs may show secrets: cannot read from the first master what to mask (The node is gone.)";
const outsider = { name: "../evil", text: "" };

test.each<[string, readonly NodeRecord[], readonly NamedText[], readonly string[]]>([
  ["no text", [], [], []],
  ["a console", nodes, [booted], [saved]],
  ["the log of an installation", nodes, [booted, installed], [saved, secrets]],
  ["that log, but no first master", nodes.slice(1), [installed], [saved]],
  [
    "a text with another name",
    [],
    [outsider],
    ['a log was not saved: "../evil" is not a valid name for a log'],
  ],
])(
  "after a failure, %s: the user sees what was saved, and what it may show",
  async (_, own, console, told) => {
    const outcome = await saveAfterFailure(own, console);
    expect([outcome.steps, outcome.told]).toEqual([["Save failure logs: done"], [...told]]);
    const texts = [
      ...own.map(({ role }) => `${role}_0.no-logs.txt`),
      ...console.map(({ name }) => name),
    ];
    expect(outcome.files.toSorted()).toEqual(
      texts.filter((name) => name !== outsider.name).toSorted(),
    );
  },
);

test("logs that can't be written hide no failure", async () => {
  const { told } = await saveAfterFailure([], [booted], "absent");
  expect(told).toEqual([expect.stringMatching(/^the nodes' logs were not saved: ENOENT/)]);
});

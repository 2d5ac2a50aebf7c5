/** `logs --follow` and `logs --merged` on nodes whose journal is a file. */
import { appendFile, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { followLogs } from "../../../src/cluster/logs/follow-logs.ts";
import { saveMergedLogs } from "../../../src/cluster/logs/save-merged-logs.ts";
import { LineProgress } from "../../../src/library/runtime.ts";
import { nodeReference } from "../../../src/model/cluster-record.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { failureOf } from "../../support/failure-of.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** Follows the file `run/journal`, from the first line or from that behind a cursor. */
const follow = `
from=$(printf '%s' "$*" | sed -n 's/.*--after-cursor=\\([0-9]*\\).*/\\1/p')
exec tail -n "+$((\${from:-0} + 1))" -f "$MACHINE/run/journal"
`;

/** Prints the file `run/journal`, or follows it. */
const journalctl = (following: string): string => `#!/bin/sh
case " $* " in
  *" -n 0 "*) ;;
  *" -f "*) ${following} ;;
  *" export "*) echo "__CURSOR=$(wc -l <"$MACHINE/run/journal")" ;;
  *_TRANSPORT*) ;;
  *) cat "$MACHINE/run/journal" ;;
esac
`;

async function openCluster(following = follow) {
  const scratch = await scratchFolder();
  const programs = { journalctl: journalctl(following) };
  const machines = await startMachines({ roles: ["master", "agent"], programs });
  const directory = join(scratch.path, "state");
  await machines.openTo(directory);
  const notes: string[] = [];
  const progress = new LineProgress((line) => notes.push(line));
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const runtime = { environment: {}, clock: systemClock, progress };
  for (const machine of machines.machines) await machine.write("run/journal", "");
  const write = async (index: number, line: string): Promise<void> =>
    appendFile(join(machines.machines[index]!.folder, "run/journal"), `${line}\n`);
  const dispose = async (): Promise<void> => {
    await machines[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  };
  return { scratch, machines, cluster, runtime, notes, write, [Symbol.asyncDispose]: dispose };
}

const at = (second: number, text: string): string =>
  `2026-11-28T10:00:0${second}.000001+00:00 host etcd[7]: ${text}`;

test.skipIf(machinesLack !== undefined)(
  "warns once if the first master doesn't say what to mask",
  async () => {
    await using opened = await openCluster();
    const { runtime, notes, write } = opened;
    const nodes = opened.cluster.nodes.map((node) =>
      node.role === "master" ? { ...node, state: "stopped" as const } : node,
    );
    const stop = new AbortController();
    await write(1, at(1, "one"));
    await write(1, at(2, "two"));
    const seen: string[] = [];
    const following = followLogs(
      { ...runtime, signal: stop.signal },
      {
        cluster: { ...opened.cluster, nodes },
        nodes: ["agent_0"],
        agoMs: undefined,
        onLine: (_, line) => {
          if (seen.push(line) === 2) stop.abort(new Error("enough"));
        },
        isOutputClosed: () => false,
      },
    );
    await following.catch(() => {});
    expect(notes.filter((line) => line.includes("may show secrets"))).toEqual([
      "Warning: these lines may show secrets: cannot read from the first master what to mask (the cluster's first master is stopped)",
    ]);
  },
);

test.skipIf(machinesLack !== undefined)(
  `follows journals until the abort, also past a lost connection and a clock that is set back, and repeats no line (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster();
    const { cluster, runtime, machines, notes, write } = opened;
    const lines: string[] = [];
    const stop = new AbortController();
    const until = async (text: string): Promise<void> => {
      while (!lines.some((line) => line.includes(text))) await Bun.sleep(20);
    };
    await write(0, at(1, "one"));
    const request = {
      cluster,
      nodes: ["all"],
      agoMs: undefined,
      onLine: (node: Parameters<typeof nodeReference>[0], line: string) =>
        void lines.push(`${nodeReference(node)} ${line}`),
      isOutputClosed: () => false,
    };
    const following = followLogs({ ...runtime, signal: stop.signal }, request);
    following.catch(() => {});
    await until("one");
    await write(1, at(2, "two"));
    await until("two");
    machines.machines[0]!.cutConnections();
    await write(0, at(3, "three"));
    await until("three");
    // A fault may set the clock back.
    await write(0, at(1, "earlier"));
    await until("earlier");
    machines.machines[0]!.cutConnections();
    await write(0, at(2, "after it"));
    await until("after it");
    stop.abort(new Error("Ctrl-C"));
    expect(following).rejects.toThrow("Ctrl-C");
    await following.catch(() => {});
    expect(lines).toEqual([
      `master_0 ${at(1, "one")}`,
      `agent_0 ${at(2, "two")}`,
      `master_0 ${at(3, "three")}`,
      `master_0 ${at(1, "earlier")}`,
      `master_0 ${at(2, "after it")}`,
    ]);
    expect(notes.join("\n")).toContain("The connection to master_0 is lost");
  },
);

test.skipIf(machinesLack !== undefined)(
  `a journal that can't be read is an error, with its reason (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster("echo Failed to open files: Bad message >&2; exit 1");
    const { cluster, runtime, notes } = opened;
    const all = { cluster, nodes: ["all"], agoMs: 1000 };
    const following = followLogs(
      { ...runtime, signal: AbortSignal.timeout(60_000) },
      { ...all, onLine: () => {}, isOutputClosed: () => false },
    );
    expect(await failureOf(following)).toMatchObject({
      id: "remote-command-failed",
      message: expect.stringContaining("Failed to open files: Bad message"),
    });
    expect(notes.join("\n")).not.toContain("is lost");
  },
);

test.skipIf(machinesLack !== undefined)(
  `a journal that can't be read is an error although another node's goes on (${machinesLack ?? "here"})`,
  async () => {
    const broken = 'if [ -e "$MACHINE/run/broken" ]; then echo Bad message >&2; exit 1; fi';
    await using opened = await openCluster(`${broken}\n${follow}`);
    await opened.machines.machines[1]!.write("run/broken", "");
    const signal = AbortSignal.timeout(10_000);
    const following = followLogs(
      { ...opened.runtime, signal },
      {
        cluster: opened.cluster,
        nodes: ["all"],
        agoMs: undefined,
        onLine: () => {},
        isOutputClosed: () => false,
      },
    );
    expect(await failureOf(following)).toMatchObject({
      id: "remote-command-failed",
      message: expect.stringContaining("The journal of agent_0 cannot be read: Bad message"),
    });
    expect(signal.aborted).toBe(false);
  },
  15_000,
);

test.skipIf(machinesLack !== undefined)(
  `ends when nobody reads the lines any more (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster();
    await opened.write(1, at(1, "one"));
    await followLogs(
      { ...opened.runtime, signal: neverAborted },
      {
        cluster: opened.cluster,
        nodes: ["agents"],
        agoMs: undefined,
        onLine: () => {},
        isOutputClosed: () => true,
      },
    );
  },
);

test.skipIf(machinesLack !== undefined)(
  `writes one private file of all nodes in the order of time, without terminal codes (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster();
    const { cluster, runtime, scratch, write } = opened;
    await write(0, at(3, "three"));
    await write(1, at(2, "\u001b]0;owned\u0007two"));
    await write(0, at(4, "four"));
    const file = join(scratch.path, "all.log");
    const backend = { consoleOutput: async () => [] };
    const saved = await saveMergedLogs({ ...runtime, signal: neverAborted }, backend, {
      cluster,
      file,
    });
    expect(saved.file).toBe(file);
    const text = await readFile(file, "utf8");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(text).not.toContain("\u001b");
    expect(text).toMatch(/^# The clock of master_0 is /m);
    const lines = text.split("\n").filter((line) => line.includes("etcd: "));
    expect(lines.map((line) => line.replace(/^\S+ /, ""))).toEqual([
      expect.stringMatching(/^agent_0 {2}etcd: .*two$/),
      "master_0 etcd: three",
      "master_0 etcd: four",
    ]);
    const agoMs = 60_000;
    await saveMergedLogs({ ...runtime, signal: neverAborted }, backend, { cluster, file, agoMs });
    expect(await readFile(file, "utf8")).not.toContain("etcd");
  },
);

test.skipIf(machinesLack !== undefined)(
  `the one file says which logs it lacks, or has only the end of (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster();
    const { runtime, scratch, write } = opened;
    await write(0, Array.from({ length: 5000 }, () => at(3, "three")).join("\n"));
    const nodes = opened.cluster.nodes.map((node) =>
      node.role === "agent" ? { ...node, ssh: { ...node.ssh, port: 1 } } : node,
    );
    const cluster = { ...opened.cluster, nodes };
    const file = join(scratch.path, "all.log");
    const backend = { consoleOutput: async () => [] };
    await saveMergedLogs({ ...runtime, signal: neverAborted }, backend, { cluster, file });
    const notes = (await readFile(file, "utf8")).split("\n").filter((line) => line.startsWith("#"));
    expect(notes).toContain("# Of master_0, only the end of these logs is here: journal.txt.");
    expect(notes).toContainEqual(expect.stringMatching(/^# No logs of agent_0: The host key /));
  },
);

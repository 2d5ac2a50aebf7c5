/** Whose clocks are set after this computer has slept, and when. The kernel's counter is a file of the test. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { correctSleptClocks } from "../../../src/cluster/correct-slept-clocks.ts";
import { ClusterError } from "../../../src/errors.ts";
import type { ClusterRecord, NodeRecord, NodeState } from "../../../src/model/cluster-record.ts";
import type { Connection } from "../../../src/ssh/connection/connection.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const nowMs = 1_700_000_000_000;

interface Given {
  readonly backend?: ClusterRecord["backend"];
  readonly states?: readonly NodeState[];
  /** The index of a node that cannot be reached. */
  readonly broken?: number;
}

/** A cluster whose nodes' clocks lag behind, and a computer that has slept as often as `sleep` was called. */
async function open({ backend = "vm", states = ["running", "running"], broken }: Given = {}) {
  const folder = await scratchFolder();
  const directory = join(folder.path, "a-0123abcd");
  await mkdir(directory);
  const suspensionsPath = join(folder.path, "success");
  const nodes = states.map((state, index): NodeRecord => {
    const ssh = { host: "127.0.0.1", port: 4000 + index, user: "e2e" };
    return {
      id: `vm-${index}`,
      role: "master",
      index,
      state,
      ssh,
      privateAddress: `10.93.0.${index + 2}`,
    } as NodeRecord;
  });
  const cluster = {
    id: "a",
    creationId: "0123abcd",
    backend,
    directory,
    nodes,
  } as unknown as ClusterRecord;
  const lateMs = new Map(nodes.map(({ id }) => [id, 0]));
  const [logins, warnings]: [string[], string[]] = [[], []];
  const talk =
    (id: string): Connection["run"] =>
    async ({ stdin, onOutput }) => {
      for await (const line of stdin as AsyncIterable<Uint8Array>) {
        const word = Buffer.from(line).toString().trim();
        if (word !== "ask") lateMs.set(id, lateMs.get(id)! - Number(word) / 1e6);
        await onOutput?.(
          "stdout",
          word === "ask" ? `${(nowMs - lateMs.get(id)!) / 1000} 0\n` : "set\n",
        );
      }
      return { status: 0, stdout: "", stderr: "" };
    };
  const connect = async ({
    id,
    index,
  }: {
    readonly id: string;
    readonly index: number;
  }): Promise<Connection> => {
    logins.push(id);
    if (index === broken) throw new ClusterError("connection-failed", "it is gone.");
    return { run: talk(id) } as unknown as Connection;
  };
  const progress = { ...silentProgress, warn: (text: string) => void warnings.push(text) };
  const clock = { now: () => nowMs, sleep: async () => {} };
  const state = { sleeps: 0 };
  return {
    logins,
    warnings,
    late: () => [...lateMs.values()],
    sleep: async (ms: number) => {
      state.sleeps += 1;
      await writeFile(suspensionsPath, `${state.sleeps}\n`);
      for (const [id, before] of lateMs) lateMs.set(id, before + ms);
    },
    correct: async (signal = neverAborted) =>
      correctSleptClocks(cluster, { connect }, { clock, progress, suspensionsPath }, signal),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  };
}

test("after each sleep, the next command sets the clocks of all nodes, once", async () => {
  await using computer = await open();
  await computer.correct();
  expect(computer.logins).toEqual([]);
  for (const times of [1, 2]) {
    await computer.sleep(3_600_000);
    expect(computer.late()).toEqual([3_600_000, 3_600_000]);
    await computer.correct();
    await computer.correct();
    expect(computer.late()).toEqual([0, 0]);
    expect(computer.logins).toHaveLength(2 * times);
  }
});

test.each(["container", "cloud"] as const)(
  "nodes of the kind %s have a clock that doesn't stand still",
  async (backend) => {
    await using computer = await open({ backend });
    await computer.sleep(60_000);
    await computer.correct();
    expect(computer.logins).toEqual([]);
  },
);

test("nodes that don't run are left alone, and one that can't be reached is named but holds nothing up", async () => {
  await using computer = await open({
    states: ["running", "paused", "stopped", "running"],
    broken: 3,
  });
  await computer.sleep(60_000);
  await computer.correct();
  expect(computer.logins.toSorted()).toEqual(["vm-0", "vm-3"]);
  expect(computer.late()).toEqual([0, 60_000, 60_000, 60_000]);
  expect(computer.warnings.join("\n")).toMatch(
    /^The clock of master_3 may be late, .*: it is gone\.$/,
  );
  await computer.correct();
  expect(computer.logins).toHaveLength(2);
});

test("an interruption ends it, and the next command tries again", async () => {
  await using computer = await open();
  await computer.sleep(60_000);
  const reason = new Error("interrupted");
  expect((await failureOf(computer.correct(AbortSignal.abort(reason)))).message).toBe(
    "interrupted",
  );
  await computer.correct();
  expect(computer.late()).toEqual([0, 0]);
});

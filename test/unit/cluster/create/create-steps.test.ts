/** The steps of a creation from beginning to end, of a cluster without nodes. */
import type { Backend, Creation } from "../../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readFile, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCluster, createOpenCluster } from "../../../../src/cluster/create.ts";
import type { CreateRequest } from "../../../../src/cluster/create/create-request.ts";
import { ClusterError } from "../../../../src/errors.ts";
import type { ClusterRecord, NodeRecord } from "../../../../src/model/cluster-record.ts";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { type Clock, passedMs, systemClock } from "../../../../src/system/runtime.ts";
import { orAborted } from "../../../../src/system/time-limit.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const cluster = exampleCluster([], "none");
const broken = new ClusterError("cloud-failed", "No machine can be launched.");
const lost = new ClusterError("connection-failed", "The connection is lost.");
const ended = new ClusterError("machine-failed", "A machine has ended.");

interface Given {
  readonly clock?: Clock;
  readonly request?: Partial<CreateRequest<unknown>>;
  readonly creation?: Partial<Creation>;
}

/** The arguments of a creation below this folder, and what is called. The folder is known once the id is claimed. */
function prepare(root: string, { clock = systemClock, request, creation: own }: Given) {
  const calls: string[] = [];
  const call = (name: string) => async () => void calls.push(name);
  const claimed = { directory: "" };
  const usual: Partial<Creation> = {
    firstLogin: { lookEveryMs: 60_000 } as Creation["firstLogin"],
    claim: async ({ directory }) => {
      claimed.directory = directory;
      calls.push("claim");
    },
    launch: async (publicKey) => void calls.push(`launch ${publicKey.split(" ")[0]}`),
    look: async () => cluster,
    describe: async () => cluster,
    stop: call("stop"),
    remove: async () => {
      calls.push("remove");
      return undefined;
    },
    remains: () => ({ kept: "no machines.", left: "Nothing is left." }),
  };
  const creation = {
    summary: {
      counts: { master: 0, agent: 0, public_agent: 0 },
      lines: [],
      facts: {},
    },
    ...usual,
    ...own,
  } as Creation;
  const backend = {
    name: "container",
    plan: async () => creation,
    local: { removeExpired: call("remove expired") },
    consoleOutput: async () => {
      calls.push("logs");
      return [{ name: "master_0.console.txt", text: "it booted\n" }];
    },
  } as unknown as Backend<unknown>;
  const described: string[] = [];
  const onAbandon: CreateRequest<unknown>["onAbandon"] = (describe) => {
    described.push(describe());
    return { [Symbol.dispose]: () => void described.push(describe()) };
  };
  const stop = new AbortController();
  const { progress: recorded, steps, told } = recordingProgress();
  const waits: string[] = [];
  const progress = { ...recorded, waiting: (text: string) => void waits.push(text) };
  const runtime = { environment: { XDG_STATE_HOME: root }, clock, progress };
  const whole: CreateRequest<unknown> = {
    clusterId: "demo",
    machines: {
      variant: "none",
      distribution: "debian-12",
      counts: { master: 0, agent: 0, public_agent: 0 },
      options: {},
    },
    installation: undefined,
    ownKey: undefined,
    keepOnFailure: false,
    deadlineMs: passedMs(clock) + 60_000,
    onAbandon,
    ...request,
  };
  const words = [
    { ...runtime, signal: stop.signal },
    whole,
    { backend, install: undefined },
  ] as const;
  const state = async (): Promise<string> =>
    JSON.parse(await readFile(creationFiles(claimed.directory).creation, "utf8")).state;
  return { words, calls, described, stop, steps, told, waits, claimed, state };
}

function creating(root: string, given: Given) {
  const prepared = prepare(root, given);
  return { ...prepared, created: createCluster(...prepared.words) };
}

const begin = ["remove expired", "claim", "launch ssh-ed25519"];

test("a cluster is created step by step, and stays", async () => {
  await using scratch = await scratchFolder();
  const { created, calls, described, state } = creating(scratch.path, {
    request: {
      readFacts: async (nodes) => {
        expect(nodes.cluster).toBe(cluster);
      },
    },
  });
  expect(await created).toBe(cluster);
  expect(calls).toEqual(begin);
  expect(described).toEqual(["Nothing has been created.", "Nothing is left."]);
  expect(await state()).toBe("finished");
});

test("a cluster for a use is removed after it, without logs", async () => {
  await using scratch = await scratchFolder();
  const states: string[] = [];
  const { created, calls, claimed, state } = creating(scratch.path, {
    request: {
      use: async (used) => {
        expect(used).toBe(cluster);
        states.push(await state());
      },
    },
  });
  expect(await created).toBe(cluster);
  expect([states, calls]).toEqual([["in-use"], [...begin, "stop", "remove"]]);
  expect(existsSync(claimed.directory)).toBe(false);
});

test("a plan of no use to the caller ends the creation before anything is claimed", async () => {
  await using scratch = await scratchFolder();
  const { created, calls, claimed } = creating(scratch.path, {
    request: {
      assertPlan: ({ counts }) => {
        throw new ClusterError("bad-usage", `${counts.master} masters are too few`);
      },
    },
  });
  expect(await failureOf(created)).toMatchObject({ message: "0 masters are too few" });
  expect([calls.includes("claim"), claimed.directory]).toEqual([false, ""]);
});

test("the log is closed before its folder is removed, because some file systems keep what is open", async () => {
  await using scratch = await scratchFolder();
  const { words, claimed } = prepare(scratch.path, { request: { use: async () => {} } });
  const [work, ...others] = words;
  const present: boolean[] = [];
  const closeLog = (): void => void present.push(existsSync(claimed.directory));
  await createCluster({ ...work, progress: { ...work.progress, closeLog } }, ...others);
  expect([present, existsSync(claimed.directory)]).toEqual([[true], false]);
});

test("the nodes are opened with the user's own key", async () => {
  await using scratch = await scratchFolder();
  const own = generateKeyPair("own");
  const ownKey = join(scratch.path, "own");
  await writeFile(ownKey, own.privateKey, { mode: 0o600 });
  const keys: string[] = [];
  const { created } = creating(scratch.path, {
    request: { ownKey },
    creation: { launch: async (key) => void keys.push(key.split(" ")[1]!) },
  });
  await created;
  expect(keys).toEqual([own.publicKey.split(" ")[1]!]);
});

test.each([undefined, lost])(
  "connections are closed only after a failure, or by the caller: %#",
  async (failure) => {
    await using scratch = await scratchFolder();
    const closed = { by: "" };
    const connection: Partial<Connection> = {
      [Symbol.asyncDispose]: async () => void (closed.by ||= "the creation"),
    };
    const { words } = prepare(scratch.path, {
      request: {
        readFacts: async ({ connections }) => {
          connections.adopt(
            { id: "m", ssh: { host: "h", port: 22, user: "u" } } as NodeRecord,
            connection as Connection,
          );
          if (failure !== undefined) throw failure;
        },
      },
    });
    {
      await using _open = await createOpenCluster(...words).catch(() => undefined);
      closed.by ||= "the caller";
    }
    expect(closed.by).toBe(failure === undefined ? "the caller" : "the creation");
  },
);

test("if the use fails, the logs are saved where the caller wants them", async () => {
  await using scratch = await scratchFolder();
  const logs = scratch.path;
  const { created, calls, told } = creating(join(scratch.path, "state"), {
    request: { use: async () => Promise.reject(lost), logsFolder: logs },
  });
  expect((await failureOf(created)) as Error).toBe(lost);
  expect(calls).toEqual([...begin, "logs", "stop", "remove"]);
  expect(told).toContain(`The nodes' logs are in ${logs}`);
  expect(await readdir(logs)).toContain("master_0.console.txt");
});

test("an interrupted use ends before the creation does, but the machines end first", async () => {
  await using scratch = await scratchFolder();
  const removed = Promise.withResolvers<void>();
  const using = Promise.withResolvers<void>();
  const { created, calls, stop } = creating(scratch.path, {
    request: {
      use: async () => {
        using.resolve();
        await removed.promise;
        // Longer than a creation takes that doesn't wait for this.
        await Bun.sleep(50);
        calls.push("used");
      },
    },
    creation: {
      remove: async () => {
        removed.resolve();
        return undefined;
      },
    },
  });
  await using.promise;
  stop.abort(new Error("interrupted"));
  expect((await failureOf(created)).message).toBe("interrupted");
  expect(calls).toEqual([...begin, "stop", "logs", "used"]);
});

test.each([
  ["machines that can be launched in another way are", true, undefined],
  ["machines that can't be launched in another way are not", false, broken],
])("%s", async (_, canRecover, failure) => {
  await using scratch = await scratchFolder();
  const { created, calls } = creating(scratch.path, {
    creation: {
      launch: async () => {
        calls.push("launch");
        if (calls.filter((each) => each === "launch").length === 1) throw broken;
      },
      recover: async (error) => {
        expect(error).toBe(broken);
        return canRecover;
      },
    },
  });
  const outcome: unknown = await created.catch((error: unknown) => error);
  expect(outcome).toBe(failure ?? cluster);
  const all = canRecover ? ["launch", "launch"] : ["launch", "logs", "stop", "remove"];
  expect(calls.slice(2)).toEqual(all);
});

test("after an interruption, no other way is tried", async () => {
  await using scratch = await scratchFolder();
  const { created, calls, stop } = creating(scratch.path, {
    creation: {
      launch: async () => {
        stop.abort(new Error("interrupted"));
        throw broken;
      },
      recover: async () => {
        calls.push("recover");
        return true;
      },
    },
  });
  expect((await failureOf(created)).message).toBe("interrupted");
  expect(calls.slice(2)).toEqual(["stop", "logs", "remove"]);
});

/** Loses a connection. After that, each look has the next outcome, and then the last one. */
function losing(root: string, looks: readonly (() => Promise<ClusterRecord>)[], stopAt?: number) {
  const { now, sleep } = scriptedClock(systemClock.now());
  // The usual looks at the machines would never come.
  const never = new Promise<never>(() => {});
  const clock: Clock = {
    now,
    sleep: async (ms, signal) => (ms < 60_000 ? sleep(ms, signal) : orAborted(never, signal)),
  };
  const state = { isLost: false, looks: 0 };
  const prepared = prepare(root, {
    clock,
    request: {
      keepOnFailure: true,
      readFacts: async () => {
        state.isLost = true;
        throw lost;
      },
    },
    creation: {
      look: async () => {
        if (!state.isLost) return cluster;
        state.looks += 1;
        if (state.looks === stopAt) prepared.stop.abort(new Error("interrupted"));
        return looks[Math.min(state.looks, looks.length) - 1]!();
      },
    },
  });
  return { ...prepared, state, created: createCluster(...prepared.words) };
}

const runs = async (): Promise<ClusterRecord> => cluster;
const hasEnded = async (): Promise<never> => Promise.reject(ended);
const isBroken = async (): Promise<never> => Promise.reject(broken);

test.each([
  ["at once", [hasEnded], ended, 1],
  ["seconds later", [runs, isBroken, runs, hasEnded], ended, 4],
  ["never", [runs], lost, 16],
  ["never, because the cloud doesn't answer", [isBroken], lost, 16],
] as const)(
  "a lost connection is explained by a machine that has ended, if the cloud notices it: %s",
  async (_, looks, failure, count) => {
    await using scratch = await scratchFolder();
    const { created, state, told, waits } = losing(scratch.path, looks);
    expect((await failureOf(created)) as Error).toBe(failure);
    expect(state.looks).toBe(count);
    const waiting = "waiting for the cause of a lost connection: whether a machine has ended";
    expect(waits).toEqual(count > 1 ? [...Array<string>(count - 1).fill(waiting), ""] : []);
    expect(told.at(-1)).toBe("Kept as requested: no machines.");
  },
);

test("an interruption ends the search for the cause of a lost connection", async () => {
  await using scratch = await scratchFolder();
  const { created, state } = losing(scratch.path, [runs], 2);
  expect((await failureOf(created)) as Error).toBe(lost);
  expect(state.looks).toBe(2);
});

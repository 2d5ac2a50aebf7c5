import { expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import { outside } from "../../../../src/outside-text.ts";
import { type Phase, runPhase, runRemoteScript } from "../../../../src/platform/install/phase.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import type { Connection, RemoteCommand } from "../../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const node = { id: "i-0", role: "master", index: 0 } as NodeRecord;
const phase: Phase<string> = {
  title: "Work",
  run: async ({ reference }) => `done on ${reference}`,
};

/** Runs the phase on a node that cannot be reached until a time, in seconds from the start. Sleeping takes no time. */
function runOnLostNode(backAfterSeconds: number, failure: ClusterError) {
  const clock = scriptedClock();
  const seen = { tries: 0 };
  const connect = async (): Promise<Connection> => {
    seen.tries += 1;
    if (clock.nowMs < backAfterSeconds * 1000) throw failure;
    return {} as Connection;
  };
  const connections = { connect, adopt: () => {}, [Symbol.asyncDispose]: async () => {} };
  const { progress, steps, updates } = recordingProgress();
  const result = runPhase({ connections, clock, progress, signal: neverAborted }, phase, node);
  return { result, clock, seen, steps, updates };
}

const lost = new ClusterError("connection-failed", "The connection was lost.", { transient: true });

test.each([0, 1, 20, 60, 105])(
  "a node that is back after %d s goes on within 10 s",
  async (seconds) => {
    const { result, clock, steps, updates } = runOnLostNode(seconds, lost);
    expect(await result).toBe("done on master_0");
    expect(steps).toEqual(["Work master_0: done"]);
    expect(updates[0]).toBe(seconds === 0 ? undefined : lost.message);
    expect(clock.nowMs).toBeWithin(seconds * 1000, seconds * 1000 + 10_001);
  },
);

test("a node that restarts its SSH server is asked again soon", async () => {
  const { result, clock } = runOnLostNode(0.5, lost);
  await result;
  expect(clock.nowMs).toBeLessThan(2_000);
});

test("a node that stays lost is given up after two minutes, with the loss as the reason", async () => {
  const { result, clock, seen } = runOnLostNode(1000, lost);
  expect(await failureOf(result)).toBe(lost);
  expect(clock.nowMs).toBeWithin(105_000, 120_001);
  expect(seen.tries).toBeGreaterThan(10);
});

test.each([
  ["a refused key", new ClusterError("host-key-changed", "Another key.", {})],
  [
    "a login that stays refused",
    new ClusterError("connection-failed", "Refused.", { transient: false }),
  ],
  [
    "a command that may succeed later",
    new ClusterError("remote-command-failed", "Busy.", { transient: true }),
  ],
])("%s is no lost connection: the phase fails at once", async (_, failure) => {
  const { result, seen } = runOnLostNode(1000, failure);
  expect(await failureOf(result)).toBe(failure);
  expect(seen.tries).toBe(1);
});

test("while a node is lost, each new failure is shown", async () => {
  const failures = ["It was lost.", "It refuses.", "It is starting."].map(
    (message) => new ClusterError("connection-failed", message, { transient: true }),
  );
  const connect = async (): Promise<Connection> => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    return {} as Connection;
  };
  const connections = { connect, adopt: () => {}, [Symbol.asyncDispose]: async () => {} };
  const { progress, updates } = recordingProgress();
  const clock = scriptedClock();
  expect(await runPhase({ connections, clock, progress, signal: neverAborted }, phase, node)).toBe(
    "done on master_0",
  );
  expect(updates).toEqual(["It was lost.", "It refuses.", "It is starting."]);
});

test("after an interruption, a lost node is not waited for", async () => {
  const stop = new AbortController();
  const connect = async (): Promise<Connection> => {
    stop.abort(new Error("interrupted"));
    throw lost;
  };
  const connections = { connect, adopt: () => {}, [Symbol.asyncDispose]: async () => {} };
  const { progress, steps, updates } = recordingProgress();
  const clock = scriptedClock();
  const failure = await failureOf(
    runPhase({ connections, clock, progress, signal: stop.signal }, phase, node),
  );
  expect(failure.message).toBe("interrupted");
  expect([steps, updates]).toEqual([["Work master_0: failed"], []]);
});

/** Runs a script that prints these chunks and ends like this. */
async function runScript(
  chunks: readonly (readonly ["stdout" | "stderr", string])[],
  end: { readonly status: number; readonly stdout?: string; readonly stderr?: string },
) {
  const told: string[] = [];
  const run = async ({ onOutput }: RemoteCommand) => {
    for (const [stream, chunk] of chunks) await onOutput?.(stream, chunk);
    return { stdout: "", stderr: "", ...end };
  };
  const script = {
    name: "e2e-x",
    text: "",
    arguments: [],
    limitMs: 1000,
    task: "working",
    failure: "master_0 could not be prepared",
    errorId: "install-failed",
    onNow: (text: string) => void told.push(text),
  } as const;
  const ended = await runRemoteScript({ run } as unknown as Connection, script, neverAborted).catch(
    (error: unknown) => error,
  );
  return { ended, told };
}

test("what a script does now is shown line by line, however its output is cut", async () => {
  const { ended, told } = await runScript(
    [
      ["stdout", "now: installing curl\nSetting up curl\nit is now: late\nno"],
      ["stderr", "now: an error\n"],
      ["stdout", "w: starting"],
      ["stdout", " Docker\n"],
      ["stdout", "x".repeat(10_000)],
      ["stdout", "\nnow: done\nnow: cut off"],
    ],
    { status: 0 },
  );
  expect(ended).toMatchObject({ status: 0 });
  expect(told).toEqual(["installing curl", "starting Docker", "done"].map(outside));
});

const many = Array.from({ length: 30 }, (_, index) => `line ${index}`);

test.each([
  [
    "its own message",
    ["now: x\n", "failed: no space.\ncleanup\n"],
    "no space",
    ["failed: no space.", "cleanup"],
  ],
  ["the last line of its errors", ["now: x\nout\n", "err\n"], "err", ["err"]],
  [
    "the last line of its output",
    ["first\nlast\nnow: x\n", ""],
    "last",
    ["first", "last", "now: x"],
  ],
  ["its status", ["now: x\n\n", ""], "it exited with status 3", ["now: x"]],
  ["the last of many lines", [`${many.join("\n")}\n`, ""], "line 29", many.slice(10)],
] as const)(
  "a script that fails is reported with %s",
  async (_, [stdout, stderr], reason, output) => {
    const { ended } = await runScript([], { status: 3, stdout, stderr });
    expect(ended).toMatchObject({
      id: "install-failed",
      message: `master_0 could not be prepared: ${reason}.`,
    });
    expect(ended).toMatchObject({ facts: { status: 3, output } });
  },
);

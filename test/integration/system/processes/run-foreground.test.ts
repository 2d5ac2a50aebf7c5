import { expect, test } from "bun:test";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import {
  type ForegroundRun,
  runForeground,
} from "../../../../src/system/processes/run-foreground.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const start = (
  line: string,
  {
    signal = neverAborted,
    cwd = "/",
    onHeld,
  }: Partial<ForegroundRun & { signal: AbortSignal }> = {},
) => {
  const written = { stdout: "", stderr: "" };
  const run = {
    argv: ["/bin/sh", "-c", line],
    environment: { PATH: "/usr/bin:/bin", OWN: "value" },
    cwd,
    onHeld,
    isTerminal: false,
    signalOf: () => "SIGTERM" as const,
    onOutput: (stream: "stdout" | "stderr", chunk: string) => void (written[stream] += chunk),
  } as const;
  return { written, status: runForeground(run, signal) };
};

test("a program has its environment, folder and streams, and its status is the result", async () => {
  await using folder = await scratchFolder();
  const { written, status } = start('pwd -P; echo "$OWN" >&2; cat; exit 7', { cwd: folder.path });
  const path = await realpath(folder.path);
  expect(await status).toBe(7);
  expect(written).toEqual({ stdout: `${path}\n`, stderr: "value\n" });
});

test("a program that a signal ends has 128 + its number", async () => {
  expect(await start("kill -9 $$").status).toBe(137);
});

test("an abort passes the signal on, also to what the program has started, and waits for its end", async () => {
  const interrupted = new AbortController();
  const line = `trap 'wait; echo cleaned up; exit 0' TERM; (trap 'echo the child too; exit' TERM; echo ready; while :; do sleep 0.1; done) & wait`;
  const { written, status } = start(line, { signal: interrupted.signal });
  await until("it runs", () => written.stdout.includes("ready"));
  const reason = new Error("interrupted");
  interrupted.abort(reason);
  expect(await status.catch((error: unknown) => error)).toBe(reason);
  expect(written.stdout).toBe("ready\nthe child too\ncleaned up\n");
});

test("whoever waits learns that a program has ended whose output something else holds open", async () => {
  await using folder = await scratchFolder();
  const statuses: number[] = [];
  const line = "(while ! [ -e go ]; do sleep 0.1; done) & exit 3";
  const { status } = start(line, {
    cwd: folder.path,
    onHeld: (ended: number) => void statuses.push(ended),
  });
  await until("it is told", () => statuses.length > 0);
  await Bun.write(join(folder.path, "go"), "");
  expect(await status).toBe(3);
  expect(statuses).toEqual([3]);
});

test("a program that isn't there is the system's error", async () => {
  const run = {
    argv: ["/no/such/program"],
    environment: {},
    cwd: "/",
    isTerminal: false,
    signalOf: () => "SIGTERM" as const,
  } as const;
  const failure = await runForeground(run, neverAborted).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "ENOENT" });
});

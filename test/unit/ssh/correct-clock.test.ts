import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import correctClockFile from "../../../src/ssh/correct-clock.sh" with { type: "text" };
import { correctClock } from "../../../src/ssh/correct-clock.ts";
import type { Connection } from "../../../src/ssh/connection/connection.ts";
import { shellText } from "../../../src/ssh/shell-text.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

interface Node {
  /** How far its clock is ahead. */
  offsetMs: number;
  /** By how much of that because of a fault. */
  readonly faultSeconds?: number;
  /** How long a line takes to it, and back. */
  readonly wayMs: number;
  /** How long the lines before the first set take to it; there is no time on the way back. */
  readonly firstWayMs?: number;
  /** How long its program needs until it sets the clock, each time. */
  readonly lateMs: readonly number[];
  sets: number;
}

/** A node whose time passes only on the ways to it and while it sets its clock. */
function open(node: Node) {
  const here = { nowMs: 1_700_000_000_000 };
  const run: Connection["run"] = async ({ stdin, onOutput }) => {
    for await (const line of stdin as AsyncIterable<Uint8Array>) {
      const word = Buffer.from(line).toString().trim();
      const firstWayMs = node.sets === 0 ? node.firstWayMs : undefined;
      here.nowMs += firstWayMs ?? node.wayMs;
      const answer = word === "ask" ? told() : set(word);
      here.nowMs += firstWayMs === undefined ? node.wayMs : 0;
      await onOutput?.("stdout", `${answer}\n`);
    }
    return { status: 0, stdout: "", stderr: "" };
  };
  const told = (): string =>
    [
      (here.nowMs + node.offsetMs) / 1000,
      ...(node.faultSeconds === undefined ? [] : [node.faultSeconds]),
    ].join(" ");
  const set = (word: string): string => {
    const lateMs = node.lateMs[node.sets % node.lateMs.length] ?? 0;
    node.sets += 1;
    here.nowMs += lateMs;
    node.offsetMs += Number(word) / 1e6 - lateMs;
    return "set";
  };
  const clock = { now: () => Math.round(here.nowMs), sleep: async () => {} };
  return { connection: { run }, runtime: { clock, progress: silentProgress } };
}

test.each([
  ["hours behind", { offsetMs: -7_200_000, wayMs: 5, lateMs: [0] }],
  ["ahead", { offsetMs: 3_000, wayMs: 5, lateMs: [0] }],
  [
    "on a node where each program takes long to start",
    { offsetMs: -9_000, wayMs: 400, lateMs: [700] },
  ],
  [
    "on a node that answers late at first",
    { offsetMs: -9_000, wayMs: 5, firstWayMs: 900, lateMs: [0] },
  ],
  [
    "on a busy node",
    { offsetMs: -9_000, wayMs: 5, lateMs: [90, 140, 60, 130, 75, 100, 110, 95, 105, 100] },
  ],
] as const)("a clock that is %s is set until it is right", async (_, given) => {
  const node: Node = { ...given, sets: 0 };
  const { connection, runtime } = open(node);
  const found = await correctClock({ ...runtime, signal: neverAborted }, connection, "master_0");
  expect(Math.abs(node.offsetMs)).toBeLessThanOrEqual(25);
  expect(Math.abs(found.offsetMs - node.offsetMs)).toBeLessThanOrEqual(1);
});

test("a clock that is right isn't touched", async () => {
  const node: Node = { offsetMs: 15, wayMs: 30, lateMs: [0], sets: 0 };
  const { connection, runtime } = open(node);
  await correctClock({ ...runtime, signal: neverAborted }, connection, "master_0");
  expect([node.offsetMs, node.sets]).toEqual([15, 0]);
});

test.each([3_600, -3_600])(
  "a clock that a fault has set wrong stays wrong by as much: %d s",
  async (faultSeconds) => {
    const node: Node = {
      offsetMs: faultSeconds * 1000 - 7_000,
      faultSeconds,
      wayMs: 5,
      lateMs: [0],
      sets: 0,
    };
    const { connection, runtime } = open(node);
    const { offsetMs } = await correctClock(
      { ...runtime, signal: neverAborted },
      connection,
      "master_0",
    );
    expect(Math.abs(offsetMs)).toBeLessThanOrEqual(20);
    expect(Math.abs(node.offsetMs - faultSeconds * 1000)).toBeLessThanOrEqual(25);
  },
);

test("a node that refuses is an error with its words, and so is one whose shell ends", async () => {
  const refusing = async (...answers: readonly string[]) => {
    const left = [...answers];
    const run: Connection["run"] = async ({ stdin, onOutput }) => {
      for await (const _ of stdin as AsyncIterable<Uint8Array>) {
        const next = left.shift();
        if (next === undefined)
          return { status: 1, stdout: "", stderr: "sudo: a password is required\n" };
        await onOutput?.("stdout", `${next}\n`);
      }
      return { status: 0, stdout: "", stderr: "" };
    };
    const runtime = { clock: { now: () => 0, sleep: async () => {} }, progress: silentProgress };
    return await failureOf(correctClock({ ...runtime, signal: neverAborted }, { run }, "master_0"));
  };
  const id = "remote-command-failed";
  expect(await refusing()).toMatchObject({
    id,
    message: "The clock of master_0 cannot be set: sudo: a password is required.",
  });
  expect(await refusing("1", "1", "1", "1", "1", "failed")).toMatchObject({
    id,
    message: "The clock of master_0 cannot be set: date does not set it.",
  });
  // A node without the program date answers with a space and no fault.
  for (const answer of ["soon", "", " 0", "0x10 0"])
    expect(await refusing(answer, answer, answer, answer, answer)).toMatchObject({
      id,
      message: expect.stringContaining("does not tell the time"),
    });
});

test.each(["bash", "sh"])(
  "the node's script tells the time, and shifts it by nanoseconds without perl and python3: %s",
  async (shell) => {
    await using folder = await scratchFolder();
    const asked = join(folder.path, "asked");
    const date = `#!/bin/sh\ncase $1 in --set=*) echo "$1" >>'${asked}' ;; *) exec /bin/date "$@" ;; esac\n`;
    await writeFile(join(folder.path, "date"), date);
    await chmod(join(folder.path, "date"), 0o755);
    // These would set this computer's clock.
    for (const name of ["perl", "python3"]) {
      await writeFile(join(folder.path, name), "#!/bin/sh\nexit 1\n");
      await chmod(join(folder.path, name), 0o755);
    }
    for (const [name, text] of [
      ["a.offset", "90 1000"],
      ["b.offset", "-30 1000"],
      ["clock.base", "1700000000.250"],
    ] as const)
      await writeFile(join(folder.path, name), `${text}\n`);
    const before = Date.now() / 1000;
    const child = Bun.spawn([shell, "-c", shellText(correctClockFile, { FAULTS: folder.path })], {
      env: { PATH: `${folder.path}:/usr/bin:/bin` },
      stdin: Buffer.from("ask\n3600000000001\n-7200000000001\n"),
    });
    const [line = "", ...rest] = (await new Response(child.stdout).text()).split("\n");
    const after = Date.now() / 1000;
    const isBetween = (seconds: number, addSeconds = 0): boolean =>
      before - 0.01 <= seconds - addSeconds && seconds - addSeconds <= after + 0.01;
    // Two faults have set the clock ahead by a minute together.
    expect(line).toMatch(/^\d+\.\d+ 60$/);
    expect(isBetween(Number.parseFloat(line))).toBe(true);
    // Their true time is shifted with the clock, so that they leave it right when they heal.
    expect(await readFile(join(folder.path, "clock.base"), "utf8")).toBe("1699996400.250\n");
    expect(rest).toEqual(["set", "set", ""]);
    const [later, earlier] = (await readFile(asked, "utf8")).trim().split("\n");
    expect(later).toMatch(/^--set=@\d+\.\d{9}$/);
    expect(isBetween(Number(later!.slice("--set=@".length)), 3600)).toBe(true);
    expect(isBetween(Number(earlier!.slice("--set=@".length)), -7200)).toBe(true);
  },
);

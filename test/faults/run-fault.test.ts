/** Shows that each invariant can fail. Otherwise a runner that never finds anything would accept every program. */
import { expect, test } from "bun:test";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ended } from "../e2e/support/executable.ts";
import { temporaryFolder } from "../e2e/support/temporary-folder.ts";
import { ArgumentWatch } from "./argument-watch.ts";
import type { Exhibit, Expected, Fault, Thing, World } from "./fault.ts";
import { playAll } from "./play-all.ts";
import { endProcessesOf, processesOf } from "./processes.ts";
import { runFault, type Verdict } from "./run-fault.ts";
import { sliceOf } from "./slice.ts";
import { neverAborted } from "../support/never-aborted.ts";

const secret = "secret-7f3a9c";
const machine: Thing = { kind: "machine", id: "i-1" };
const failure: Ended = {
  status: 1,
  signal: undefined,
  stdout: "",
  stderr: "Error: the disk is full.\n[cloud-failed]\n",
};
const success: Ended = { status: 0, signal: undefined, stdout: "faulty\n", stderr: "" };
const expected: Expected = {
  status: 1,
  id: "cloud-failed",
  says: ["the disk is full"],
  keepsCluster: false,
};

interface Script {
  readonly ended?: Partial<Ended>;
  readonly next?: Partial<Ended>;
  /** What exists in the backend after the fault, and after the next creation. */
  readonly left?: readonly Thing[];
  readonly leftAfterNext?: readonly Thing[];
  readonly exhibits?: readonly Exhibit[];
  /** Done by the command that meets the fault. */
  readonly deed?: (folder: string) => Promise<unknown>;
  readonly hasStruck?: false;
  readonly expected?: Partial<Expected>;
}

/**
 * A world with the contents that the script describes. Its first command meets the fault; the second is the next
 * creation.
 */
async function openScripted(script: Script): Promise<World> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-scripted-"));
  const [tmp, state] = [join(folder, "tmp"), join(folder, "state")];
  await Promise.all([mkdir(tmp), mkdir(state)]);
  const runs = { count: 0 };
  return {
    folder,
    stateFolder: state,
    temporaryFolder: tmp,
    environment: {},
    secrets: [secret],
    createWords: ["create"],
    settleMs: 150,
    run: async () => {
      runs.count += 1;
      if (runs.count > 1) return { ...success, ...script.next };
      await script.deed?.(folder);
      return { ...failure, ...script.ended };
    },
    leftovers: async () => (runs.count > 1 ? script.leftAfterNext : script.left) ?? [],
    endCluster: async () => {},
    exhibits: async () => script.exhibits ?? [],
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function verdictOn(script: Script): Promise<Verdict> {
  using watch = new ArgumentWatch();
  const fault: Fault<World> = {
    name: "scripted",
    place: "computer",
    strike: async () => ({
      hasStruck: () => script.hasStruck ?? true,
      [Symbol.asyncDispose]: async () => {},
    }),
    expected: { ...expected, ...script.expected },
  };
  return await runFault(fault, async () => openScripted(script), watch);
}

test("a fault that ends well breaks nothing", async () => {
  expect(await verdictOn({})).toMatchObject({ breaches: [], machinesLeft: 0, secretsSeen: 0 });
});

test.each([
  ["another exit code", { ended: { status: 70 } }, "ended with 70, not 1"],
  [
    "an end by a signal",
    { ended: { status: undefined, signal: "SIGKILL" } },
    "ended with SIGKILL, not 1",
  ],
  [
    "another error id",
    { ended: { stderr: "the disk is full\n[bad-usage]\n" } },
    "error id bad-usage, not cloud-failed",
  ],
  [
    "no error id",
    { ended: { stderr: "the disk is full\n" } },
    "error id missing, not cloud-failed",
  ],
  ["more time than promised", { expected: { withinMs: -1 } }, /^took 0\.\d s, over -0\.0 s$/],
  ["a message without the cause", { expected: { says: ["the moon"] } }, 'does not say "the moon"'],
  ["a text that must not be there", { expected: { hides: ["full"] } }, 'says "full"'],
  [
    "a library's own text",
    { ended: { stderr: "the disk is full: {error}.$response\n[cloud-failed]\n" } },
    /^says .*response/,
  ],
  ["a machine left", { left: [machine] }, "left unannounced: machine i-1"],
  ["a group left", { left: [{ kind: "group", id: "sg-1" }] }, "left unannounced: group sg-1"],
  [
    "a temporary file left",
    { deed: (folder: string) => Bun.write(join(folder, "tmp/x"), "") },
    /^left unannounced: file .*\/tmp\/x$/,
  ],
  ["a secret in an output", { ended: { stdout: secret } }, "a secret is in stdout (ended) (secr…)"],
  [
    "a secret in a log",
    { deed: (folder: string) => Bun.write(join(folder, "state/log"), secret) },
    "a secret is in state file log (secr…)",
  ],
  [
    "a secret on a node",
    { exhibits: [{ where: "a node's command", text: secret }] },
    "a secret is in a node's command (secr…)",
  ],
  [
    "a next creation that fails",
    { next: { status: 1, stderr: "Error: no\n" } },
    "the next create ends with 1: Error: no",
  ],
  [
    "what the next creation leaves",
    { leftAfterNext: [machine] },
    "still there after the next create: machine i-1",
  ],
  ["a fault that the command never met", { hasStruck: false }, "the fault never struck"],
] as const satisfies readonly (readonly [string, Script, string | RegExp])[])(
  "%s is found",
  async (_what, script, breach) => {
    const { breaches } = await verdictOn(script);
    expect(breaches).toHaveLength(1);
    expect(breaches[0]).toMatch(breach);
  },
);

test("a secret in an argument list is found", async () => {
  const deed = async (): Promise<void> =>
    void (await Bun.spawn(["sh", "-c", "sleep 0.5; : $0", secret]).exited);
  const { breaches, secretsSeen } = await verdictOn({ deed });
  expect(breaches).toEqual(["a secret is in an argument list (secr…)"]);
  expect(secretsSeen).toBe(1);
});

test("a process left is found", async () => {
  const started: Bun.Subprocess[] = [];
  const deed = async (folder: string): Promise<void> => {
    started.push(Bun.spawn(["sleep", "60"], { env: { TMPDIR: join(folder, "tmp") } }));
  };
  const { breaches } = await verdictOn({ deed });
  for (const child of started) child.kill();
  expect(breaches).toEqual([
    expect.stringMatching(/^left unannounced: process \d+ \(sleep 60 \)$/),
  ]);
});

test("what a message announces is not unannounced", async () => {
  const stderr = "Left behind: machines i-1. the disk is full\n[cloud-failed]\n";
  expect(await verdictOn({ left: [machine], ended: { stderr } })).toMatchObject({
    breaches: [],
    machinesLeft: 0,
  });
});

test("machines that stay are counted once, announced or not", async () => {
  const { machinesLeft } = await verdictOn({
    left: [machine],
    leftAfterNext: [machine, { kind: "machine", id: "i-2" }],
  });
  expect(machinesLeft).toBe(2);
});

test("the last line counts what was survived, left and seen, and a fault that could not be played counts as not survived", async () => {
  const lines: string[] = [];
  const named = (name: string, play: () => Promise<Verdict>) => ({
    name,
    place: "computer",
    seconds: 1,
    lack: undefined,
    play,
  });
  const verdict: Verdict = { breaches: [], machinesLeft: 0, secretsSeen: 0, output: "" };
  const faults = [
    named("good", async () => verdict),
    named("bad", async () => ({
      ...verdict,
      breaches: ["left unannounced: machine i-1"],
      machinesLeft: 1,
      secretsSeen: 2,
    })),
    { ...named("elsewhere", async () => verdict), lack: "only root mounts" },
    named("broken", async () => Promise.reject(new Error("no port"))),
  ];
  const print = (line: string): void => void lines.push(line);
  await playAll(faults, { atOnce: 1, showsOutput: false, print }, neverAborted);
  expect(lines.at(-1)).toBe("1 of 3 faults survived; machines left behind: 1; secrets shown: 2");
  expect(lines[0]).toMatch(/^survived .*good$/);
  expect(lines[1]).toMatch(/^NOT SURVIVED .*bad\n +left unannounced: machine i-1$/);
  expect(lines[2]).toMatch(/^skipped .*elsewhere: only root mounts$/);
  expect(lines[3]).toMatch(/^NOT SURVIVED .*broken\n +it could not be played: no port$/);
});

test("each short fault has its day, and a day's slice is short", () => {
  const faults = Array.from({ length: 200 }, (_, index) => ({
    name: `fault ${index}`,
    seconds: index === 7 ? 90 : 5,
  }));
  const days = [0, 1, 2, 3].map((day) =>
    sliceOf(faults, new Date(Date.UTC(2026, 0, 1 + day)), 300),
  );
  for (const slice of days)
    expect(slice.reduce((sum, { seconds }) => sum + seconds, 0)).toBeLessThanOrEqual(305);
  expect(new Set(days.flat().map(({ name }) => name))).toEqual(
    new Set(faults.map(({ name }) => name).filter((name) => name !== "fault 7")),
  );
});

test("a world ends what its programs have started, also while they start more", async () => {
  await using folder = await temporaryFolder();
  const script = "while :; do sleep 60 & sleep 0.001; done";
  const starter = Bun.spawn(["sh", "-c", script], { env: { ...process.env, TMPDIR: folder.path } });
  while (processesOf(folder.path).length < 10) await Bun.sleep(10);
  await endProcessesOf(folder.path);
  expect(processesOf(folder.path)).toEqual([]);
  expect(await starter.exited).not.toBe(0);
});

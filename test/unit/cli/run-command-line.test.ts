import { EventEmitter } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  type Command,
  type Program,
  defineCommand,
  type ProcessLike,
} from "../../../src/cli/command.ts";
import { argument, listArgument, option } from "../../../src/cli/options/option.ts";
import { choice, text as anyText } from "../../../src/cli/options/value-types.ts";
import { runCommandLine } from "../../../src/cli/run-command-line.ts";
import { habitsOf } from "../../../src/commands/habits.ts";
import { ClusterError } from "../../../src/errors.ts";
import type { Output } from "../../../src/system/processes/output.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** A program whose only command, `work`, does what the test says. */
function programOf(parts: Partial<Pick<Command, "check" | "run">>): Program {
  const work = defineCommand({
    name: "work",
    summary: "Works",
    description: "",
    positionals: {},
    options: {},
    examples: [],
    run: async () => {},
    ...parts,
  });
  return { name: "example", summary: "", commands: [work], licenses: () => Promise.resolve("") };
}

/** An output that accepts each text only after other work had its turn, as a slow reader does. */
const slowOutput = (texts: string[], failure?: Error): Output => ({
  write: async (text) => {
    await new Promise(setImmediate);
    if (failure !== undefined) throw failure;
    texts.push(String(text));
  },
  [Symbol.dispose]: () => {},
});

interface Settings {
  readonly env?: Readonly<Record<string, string>>;
  readonly stdoutFailure?: Error;
}

/** A process that runs a program. `printed` is stdout and stderr at the time of the call. */
function openProcess({ env = {}, stdoutFailure }: Settings = {}) {
  const [stdout, stderr, kills]: [string[], string[], unknown[]] = [[], [], []];
  const printed = () => ({ stdout: stdout.join(""), stderr: stderr.join("") });
  const host = Object.assign(new EventEmitter(), {
    argv: [],
    env: { CI: "true", ...env },
    cwd: tmpdir,
    pid: 4711,
    exitCode: undefined as number | undefined,
    kill: (_: number, signal: string) => kills.push({ signal, ...printed() }),
  });
  const outputs = { stdout: slowOutput(stdout, stdoutFailure), stderr: slowOutput(stderr) };
  const run = async (program: Program, argv: readonly string[] = ["work"]) => {
    await runCommandLine(program, argv, { host: host as unknown as ProcessLike, outputs });
    return { exitCode: host.exitCode, kills, ...printed() };
  };
  return { host, run };
}

test.each([
  [["--"], "COMMAND: required"],
  [["--", "work"], "--: cannot be combined with anything else"],
  [["-"], "-: cannot be combined with anything else"],
  [["-x"], "-x: no such option"],
  [["-x", "--", "y"], "-x: no such option"],
  [["work-"], '"work-": no such command; did you mean work?'],
])("%j runs no command", async (argv, problem) => {
  const { exitCode, stdout, stderr } = await openProcess().run(programOf({}), argv);
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(stderr).toBe(`Error: ${problem}\nSee example --help\n[bad-usage]\n`);
});

test.each([
  ["destroy", "; clusters end by themselves"],
  ["ssh", "; type example work"],
  ["nonsense", ""],
])("%s is no command, with what to do instead: %p", async (word, advice) => {
  const program: Program = {
    ...programOf({}),
    missingCommands: new Map([["destroy", "clusters end by themselves"]]),
    habits: async () => ({
      ...habitsOf("example"),
      hints: new Map([["ssh", "type example work"]]),
    }),
  };
  const { exitCode, stderr } = await openProcess().run(program, [word]);
  expect(exitCode).toBe(2);
  expect(stderr).toBe(
    `Error: "${word}": no such command${advice}\nSee example --help\n[bad-usage]\n`,
  );
});

const wrongFile = new ClusterError("bad-usage", "The file is wrong", { hint: "Look at it." });
const noAnswer = new ClusterError("machine-not-set-up", "No answer");

test.each([
  ["--one: wrong", undefined, "Error: --one: wrong\nSee example work --help\n[bad-usage]\n"],
  [undefined, wrongFile, "Error: The file is wrong\nLook at it.\n[bad-usage]\n"],
  [
    "--one: wrong",
    wrongFile,
    "Error: 2 problems:\n  --one: wrong\n  The file is wrong\nSee example work --help\n[bad-usage]\n",
  ],
  ["--one: wrong", noAnswer, "Error: --one: wrong\nSee example work --help\n[bad-usage]\n"],
])(
  "after a check that finds %p and throws %p, the command doesn't run",
  async (problem, error, printed) => {
    const ran: string[] = [];
    const program = programOf({
      check: (_, problems) => {
        if (problem !== undefined) problems.add(problem);
        if (error !== undefined) throw error;
      },
      run: async () => void ran.push("work"),
    });
    const { exitCode, stderr } = await openProcess().run(program);
    expect({ exitCode, stderr, ran }).toEqual({ exitCode: 2, stderr: printed, ran: [] });
  },
);

test("variables that control the runtime are named to the command, and taken from its environment", async () => {
  const env = { BUN_OPTIONS: "--smol", BUN_BE_BUN: "", BUN_INSPECT_PRELOAD: "x.js", KEPT: "yes" };
  const program = programOf({
    run: async (_, { environment, runtimeVariables, output }) =>
      output.result({
        text: `${runtimeVariables.join()} ${Object.keys(environment).join()}`,
        data: {},
      }),
  });
  expect((await openProcess({ env }).run(program)).stdout).toBe(
    "BUN_OPTIONS,BUN_INSPECT_PRELOAD CI,KEPT\n",
  );
});

test("without -v no details are printed, also if the command has no -v", async () => {
  const program = programOf({ run: async (_, { progress }) => progress.detail(1, "a detail") });
  expect(await openProcess().run(program)).toMatchObject({ exitCode: 0, stderr: "" });
});

test("the log begins with the command, its action and nodes, and none of its other words", async () => {
  await using folder = await scratchFolder();
  const log = join(folder.path, "log");
  const power = defineCommand({
    name: "node",
    summary: "Stops nodes",
    description: "",
    positionals: {
      action: argument(choice(["stop", "start"]), { name: "ACTION", summary: "", required: true }),
      nodes: listArgument(anyText, { name: "NODE", summary: "" }),
    },
    options: { password: option(anyText, { flag: "--password", summary: "" }) },
    examples: [],
    run: async (_input, { progress }) => progress.logTo(log),
  });
  const words = ["node", "--password", "hunter2", "stop", "agent_0", "masters"];
  await openProcess().run({ ...programOf({}), commands: [power] }, words);
  const [first] = (await Bun.file(log).text()).split("\n");
  expect(first).toMatch(/Z example node stop agent_0 masters \(version \S+\)$/);
});

test("the log holds the error with its stack, and secrets are masked in both", async () => {
  await using folder = await scratchFolder();
  const log = join(folder.path, "log");
  const { stderr } = await openProcess().run(
    programOf({
      run: async (_, { progress }) => {
        progress.hide("hunter2");
        progress.logTo(log);
        throw new TypeError("hunter2 is no function");
      },
    }),
  );
  const logged = await Bun.file(log).text();
  expect(stderr).toContain(`Log: ${log}\n[bug]\n`);
  expect(logged).toMatch(/ Error: Internal error in example: TypeError: \*+ is no function\n/);
  expect(logged).toContain("run-command-line.test.ts:");
  expect(stderr + logged).not.toContain("hunter2");
});

test.each([
  ["ends well", (): number => 0],
  [
    "fails because of it",
    (): number => {
      throw new Error("a consequence");
    },
  ],
])("an uncaught error is reported even if the command %s", async (_, end) => {
  const { host, run } = openProcess();
  const work: Command["run"] = async () => {
    host.emit("uncaughtException", new Error("the cause"));
    return end();
  };
  const { exitCode, stderr } = await run(programOf({ run: work }));
  expect(exitCode).toBe(70);
  expect(stderr).toContain("Error: Internal error in example: Error: the cause\n");
});

test("a command that finishes just as it is interrupted ends by the signal, with its whole result", async () => {
  const { host, run } = openProcess();
  const work: Command["run"] = async (_, { output }) => {
    output.result({ text: "the result", data: {} });
    host.emit("SIGTERM");
  };
  const { exitCode, kills } = await run(programOf({ run: work }));
  const stderr = "Interrupted: cleaning up (interrupt again to stop at once)\n";
  expect([exitCode, kills]).toEqual([143, [{ signal: "SIGTERM", stdout: "the result\n", stderr }]]);
});

test("if the result is lost, that is reported before the program ends by a signal", async () => {
  const { host, run } = openProcess({
    stdoutFailure: Object.assign(new Error("disk full"), { code: "ENOSPC" }),
  });
  const work: Command["run"] = async (_, { output }) => {
    output.result({ text: "the result", data: {} });
    host.emit("SIGTERM");
  };
  const { kills } = await run(programOf({ run: work }));
  expect(kills).toEqual([
    { signal: "SIGTERM", stdout: "", stderr: expect.stringMatching(/\n\[output-lost\]\n$/) },
  ]);
});

test("a folder that was removed below the program is named with a remedy, without a stack", async () => {
  const { host, run } = openProcess();
  const removed = Object.assign(new Error("uv_cwd"), { code: "ENOENT", syscall: "uv_cwd" });
  host.cwd = () => {
    throw removed;
  };
  const { exitCode, stderr } = await run(programOf({ run: async () => {} }));
  expect(exitCode).toBe(5);
  expect(stderr).toBe(
    "Error: The current folder was removed, or is closed.\n" +
      "Change to another folder, and run the command again.\n[machine-not-set-up]\n",
  );
});

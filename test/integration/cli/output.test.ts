/** The output and exit codes of programs built on cli/, tested from outside, as a child process. */
import { expect, test } from "bun:test";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { commandHelp } from "../../../src/cli/help/help.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";
import { example, greet } from "./example-program.ts";
import {
  runExample,
  runOnTerminal,
  runShell,
  runShellOnTerminal,
  startExample,
  startShell,
} from "./start-example.ts";

// Shows R88.
test("results go to stdout, everything else to stderr", async () => {
  const { stdout, stderr, exitCode } = await runExample(["steps"]);
  expect({ stdout, exitCode }).toEqual({ stdout: "ready\n", exitCode: 0 });
  expect(stderr).toContain("Launch …\n");
});

test("prints the version and help, and help without arguments too", async () => {
  expect(await runExample(["--version"])).toEqual({
    exitCode: 0,
    signal: null,
    stdout: "0.0.0+source\n",
    stderr: "",
  });
  expect(await runExample(["--licenses"])).toMatchObject({
    exitCode: 0,
    stdout: "All of it is free.\n",
    stderr: "",
  });
  const help = await runExample(["--help"]);
  expect(help).toMatchObject({ exitCode: 0, stderr: "" });
  expect(help.stdout).toStartWith("Usage: example [OPTIONS] COMMAND [ARGS]...\n");
  expect(await runExample([])).toEqual(help);
  expect(await runExample(["-h"])).toEqual(help);
  expect(await runExample(["fail", "--help"])).toMatchObject({ exitCode: 0, stderr: "" });
});

test.each(
  ["--version", "--help", "--licenses", "greet --help", "big"].flatMap((words) =>
    [">/dev/full", ">&-", "<&- >&-"].map((where) => [words, where] as const),
  ),
)("%s %s says that it can't be written", async (words, where) => {
  const { exitCode, stderr } = await runShell(`$EXAMPLE ${words} ${where}`);
  expect(exitCode).toBe(1);
  expect(stderr).toMatch(
    /^Error: Cannot write (?:to stdout|the result): [a-z ]+\.\n(?:[ -~]+\n)?\[output-lost\]\n$/,
  );
});

test("what prints no result needs no stdout, and nothing needs stderr", async () => {
  expect(await runShell("$EXAMPLE fail status >&-")).toMatchObject({ exitCode: 37, stderr: "" });
  expect(await runShell("$EXAMPLE steps 2>&-")).toMatchObject({ exitCode: 0, stdout: "ready\n" });
  expect(await runShell("$EXAMPLE nonsense 2>&-")).toMatchObject({ exitCode: 2, stdout: "" });
});

test("wrong usage ends with exit code 2, all problems on stderr and nothing on stdout", async () => {
  const { exitCode, stdout, stderr } = await runExample([
    "greet",
    "--times",
    "x",
    "Nobody",
    "--xyz",
  ]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(stderr).toMatchInlineSnapshot(`
    "Error: 4 problems:
      --xyz: no such option
      --times: "x" is not a whole number from 1 to 9
      --tone: required (warm, cold)
      NAME: nobody can't be greeted
    See example greet --help
    [bad-usage]
    "
  `);
});

test.each([
  ["gret", '"gret": no such command; did you mean greet?'],
  ["", '"": no such command'],
  ["--verson", "--verson: no such option; did you mean --version?"],
  ["--help=yes", "--help: takes no value"],
])("%p is not a command", async (word, problem) => {
  const { exitCode, stdout, stderr } = await runExample([word]);
  expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
  expect(stderr).toBe(`Error: ${problem}\nSee example --help\n[bad-usage]\n`);
});

test("a wrong option before the command is the only problem reported; later words are not parsed as program options", async () => {
  const { exitCode, stderr } = await runExample(["--colour", "greet", "--tone", "warm", "Ada"]);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: "Error: --colour: no such option\nSee example --help\n[bad-usage]\n",
  });
});

test("an error says what happened, what to do, where the log is, and ends with its id", async () => {
  await using folder = await scratchFolder();
  const log = join(folder.path, "log");
  const { exitCode, stderr } = await runExample(["fail", "x", "--password", "hunter22"], {
    EXAMPLE_LOG: log,
  });
  expect(exitCode).toBe(3);
  expect(stderr).toBe(
    `Error: No cluster has the id "x"; asked as ***\nCreate it first.\nLog: ${log}\n[cluster-not-found]\n`,
  );
  const logged = await readFile(log, "utf8");
  expect(logged).toContain("the password is ***");
  expect(logged).toContain("at "); // The stack, which is not on the terminal.
  expect(logged).not.toContain("hunter22");
  expect((await stat(log)).mode & 0o777).toBe(0o600);
});

test("a command that reports failures itself ends with its own exit code", async () => {
  expect((await runExample(["fail", "x", "--remote"])).exitCode).toBe(255);
  expect((await runExample(["fail", "bug", "--remote"])).exitCode).toBe(255);
  expect((await runExample(["fail", "status"])).exitCode).toBe(37);
});

test("core dumps are disabled without a word", async () => {
  const { stderr } = await runExample(["fail", "x", "-v"]);
  expect(stderr).not.toContain("core dumps");
});

test("a bug ends with exit code 70 and asks for a report; -vv shows where it happened", async () => {
  const quiet = await runExample(["fail", "bug", "-v"]);
  expect(quiet.exitCode).toBe(70);
  expect(quiet.stderr).toMatch(
    /Internal error in example: TypeError: x is not a function\nPlease report this bug.+\n\[bug\]\n$/,
  );
  expect((await runExample(["fail", "bug", "-vv"])).stderr).toContain("example-program.ts:");
});

test("an uncaught error lets the command clean up, and counts as a bug", async () => {
  const { exitCode, stderr } = await runExample(["fail", "uncaught"]);
  expect(exitCode).toBe(70);
  expect(stderr).toContain("Error: nobody catches this");
});

test("if the clean-up fails as well, the first error is reported", async () => {
  const { exitCode, stderr } = await runExample(["fail", "scope"]);
  expect({ exitCode, stderr }).toEqual({
    exitCode: 1,
    stderr: "Error: It exists\n[cluster-exists]\n",
  });
});

test.each([
  [
    ["greet", "--tone", "warm", "Ada"],
    0,
    { greeting: "Hello Ada, warm", at: "1970-01-01T00:00:00.000Z" },
  ],
  [["greet"], 2, { error: { id: "bad-usage", hint: "See example greet --help" } }],
  [
    ["fail", "x", "--password", "hunter22"],
    3,
    { error: { id: "cluster-not-found", facts: { password: "***" } } },
  ],
  [["fail", "bug"], 70, { error: { id: "bug" } }],
])(
  "with --output json, %j prints one object, whatever else is shown",
  async (argv, exitCode, data) => {
    const run = await runExample([...argv, "--output", "json", "-vvv"]);
    expect(run.exitCode).toBe(exitCode);
    expect(JSON.parse(run.stdout)).toMatchObject({ schemaVersion: 1, ...data });
    expect(run.stdout + run.stderr).not.toContain("hunter22");
  },
);

test("a slow reader gets a whole megabyte, and whole JSON", async () => {
  // bash reads a pipe byte by byte, so the pipe is full most of the time.
  const slowly =
    'slowly() { while IFS= read -r -N 4096 part || [ -n "$part" ]; do printf %s "$part"; done; }';
  const { stdout, stderr } = await runShell(
    `${slowly}; $EXAMPLE big | slowly | wc -c; $EXAMPLE big --output json | slowly`,
  );
  const [size = "", ...json] = stdout.split("\n");
  expect(Number(size)).toBe(1_048_576);
  expect(JSON.parse(json.join("\n"))).toMatchObject({ schemaVersion: 1 });
  expect(stderr).toBe("");
});

test("a reader that closes the pipe is not an error", async () => {
  const { stdout, stderr } = await runShell(
    "$EXAMPLE big | head -1; echo ${PIPESTATUS[0]}; $EXAMPLE big 2>&1 >/dev/null | true",
  );
  expect({ stdout, stderr }).toEqual({ stdout: "0123456789abcde\n0\n", stderr: "" });
});

test("child processes inherit no variables that would make them run other code", async () => {
  const own = { BUN_BE_BUN: "", BUN_INSPECT_NOTIFY: "", BUN_OPTIONS: "--smol", KEPT: "yes" };
  const { stdout } = await runExample(["child", "env"], own);
  expect(stdout).toContain("KEPT=yes");
  expect(stdout).not.toMatch(/BUN_(?!RUNTIME_TRANSPILER_CACHE_PATH=0)/);
});

test("a secret is the first line of stdin; the rest stays unread", async () => {
  const running = startExample(["secret"]);
  await running.child.stdin.write("pässw0rd\r\nfor the child\n");
  await running.child.stdin.end();
  const { stdout, stderr } = await running.ended();
  expect({ stdout, stderr }).toEqual({
    stdout: "rest: for the child\n",
    stderr: "the secret is ***, 8 long\n",
  });
  expect(await runExample(["secret"])).toMatchObject({ exitCode: 2, stdout: "" });
});

test("on a terminal, the prompt for a secret doesn't echo it", async () => {
  const { shown, exitCode } = await runOnTerminal(["secret"], {
    "Password: ": "hunter22\n",
    "\r\n": "rest\n\x04",
  });
  expect(exitCode).toBe(0);
  expect(shown).toContain("the secret is ***, 8 long");
  expect(shown).not.toContain("hunter22");
});

test.each([
  ["ends", "; stty -a", "hunter22\n"],
  ["is interrupted", " || stty -a", "\x03"],
])("a terminal echoes again after a prompt for a secret %s", async (_, after, answer) => {
  const line = `trap : INT; $EXAMPLE secret${after}`;
  const { shown } = await runShellOnTerminal(line, { "Password: ": answer, "\r\n": "\x04" });
  expect(shown).toMatch(/[^-]\becho\b/);
});

test.each(["KILL", "TERM"])(
  "a terminal echoes again after SIG%s during a prompt for a secret",
  async (signal) => {
    const ask = `before=$(stty -g); $EXAMPLE secret <&0 & pid=$!; until stty -a | grep -q -e -echo\\\\b; do sleep 0.05; done`;
    const line = `${ask}; kill -${signal} $pid; wait $pid; until [ "$(stty -g)" = "$before" ]; do sleep 0.05; done; echo restored`;
    expect((await runShellOnTerminal(line, {})).shown).toContain("restored");
  },
);

test("a prompt for a secret can be interrupted", async () => {
  const { shown, signal } = await runOnTerminal(["secret"], { "Password: ": "\x03" });
  expect(signal).toBe("SIGINT");
  expect(shown).toContain(" Interrupted by SIGINT\r\n[interrupted]");
});

test("a secret has up to 64 KB", async () => {
  const script = (bytes: number): string =>
    `head -c ${bytes} /dev/zero | tr '\\0' x | $EXAMPLE secret`;
  const [longest, longer] = await Promise.all([runShell(script(65_536)), runShell(script(65_537))]);
  expect(longest).toMatchObject({ exitCode: 0, stderr: "the secret is ***, 65536 long\n" });
  expect(longer).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("longer than 65536 bytes"),
  });
});

test("stdin that can't be read is named", async () => {
  const { exitCode, stderr } = await runShell("$EXAMPLE secret </");
  expect(exitCode).toBe(2);
  expect(stderr).toMatch(
    /^Error: Cannot read stdin: it is a folder, not a file\.\n\[bad-usage\]\n$/,
  );
});

/** How often a process has asked the system to read something. */
async function readsOf(pid: number): Promise<number> {
  return Number(/^syscr: (\d+)$/m.exec(await readFile(`/proc/${pid}/io`, "utf8"))?.[1]);
}

// A parent, such as a program on Node, may have set this mode.
test.skipIf(Bun.which("perl") === null || process.platform !== "linux")(
  "an answer on a non-blocking stdin is waited for",
  async () => {
    const line = `exec perl -MFcntl -e 'fcntl(STDIN, F_SETFL, O_NONBLOCK); exec @ARGV' $EXAMPLE ask`;
    const running = startShell(line);
    await running.until("Go on?");
    // It tries to read again and again.
    const first = await readsOf(running.child.pid);
    await until("further reads", async () => (await readsOf(running.child.pid)) > first + 2);
    await running.child.stdin.write("y\n");
    await running.child.stdin.end();
    expect(await running.ended()).toMatchObject({ exitCode: 0, stdout: "going on\n" });
  },
);

test.each([
  ["y\n", "going on"],
  [" YES \n", "going on"],
  ["n\n", "staying"],
  ["yesterday\n", "staying"],
  ["\n", "staying"],
  // The end of the input.
  ["\x04", "staying"],
])("on a terminal, the answer %j to a question means %s", async (answer, meaning) => {
  const { shown, exitCode } = await runOnTerminal(["ask"], { "Go on? [y/N] ": answer });
  expect(exitCode).toBe(0);
  // The result begins a line, also after an answer without a line break.
  expect(shown).toEndWith(`\r\n${meaning}\r\n`);
  expect(shown.split("\r\n")).toHaveLength(3);
});

test.each([
  [60, 60],
  [200, 80],
])("on a terminal of %d columns, help is %d columns wide", async (columns, width) => {
  const { shown, exitCode } = await runOnTerminal(["greet", "--help"], {}, {}, columns);
  expect(exitCode).toBe(0);
  expect(shown.replaceAll("\r\n", "\n")).toBe(commandHelp(example, greet, width));
});

test("on a terminal, progress is drawn live, and its final lines stay", async () => {
  const { shown } = await runOnTerminal(["steps", "--pause", "200ms"]);
  expect(shown).toContain("Prepare 0 of 3: master_0, agent_0, agent_1");
  expect(shown).toMatch(/\x1b\[32m✔\x1b\[39m Launch: 3 machines \(\d+\.\d s\)/); // eslint-disable-line no-control-regex
  expect(shown).toEndWith("ready\r\n");
});

// Shows R94.
test.each([
  [{ NO_COLOR: "1" }, /\x1b\[\d+m/, true], // eslint-disable-line no-control-regex
  [{ TERM: "dumb" }, /\x1b/, false], // eslint-disable-line no-control-regex
  [{ CI: "true" }, /\x1b/, false], // eslint-disable-line no-control-regex
])("%j is respected", async (own, unwanted, isLive) => {
  const { shown } = await runOnTerminal(["steps", "--pause", "200ms"], {}, own);
  expect(shown).not.toMatch(unwanted);
  expect(shown.includes("✔")).toBe(isLive);
});

import { expect, test } from "bun:test";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { runProgram } from "../../../../src/system/processes/run-program.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const scripts = {
  "ignores the request to end": "trap '' TERM; echo up; while :; do sleep 1; done",
  // The child ends with the test.
  "leaves its output to a child that goes on":
    "while kill -0 $PPID; do sleep 1; done 2>/dev/null & echo up; wait",
};

test("an aborted program is killed if it doesn't end", async () => {
  const aborted = Object.entries(scripts).map(async ([name, script]) => {
    const controller = new AbortController();
    const run = {
      argv: ["sh", "-c", script] as const,
      environment: { PATH: process.env["PATH"] },
      onOutput: () => controller.abort(name),
    };
    return runProgram(run, controller.signal).catch((reason: unknown) => reason);
  });
  expect(await Promise.all(aborted)).toEqual(Object.keys(scripts));
});

test.each([
  ["runProgram", 'runProgram({ argv: ["true"], environment: {} }, signal)'],
  ["readProgram", 'readProgram({ argv: ["true"], environment: {} }, signal).next()'],
  ["deferCommand", 'deferCommand(["true"], {}, 60_000)'],
])("where no more files may be opened, the system's error of %s says so", async (name, call) => {
  const module = join(
    import.meta.dir,
    "..",
    "..",
    "..",
    "..",
    "src",
    "system",
    "processes",
    "run-program.ts",
  );
  const code = `
    const { ${name} } = await import(${JSON.stringify(module)});
    const { openSync } = await import("node:fs");
    const { signal } = new AbortController();
    try { for (;;) openSync("/dev/null"); } catch {}
    console.log(await ${call}.catch((error) => error.code));`;
  const limited = Bun.spawn([
    "sh",
    "-c",
    'ulimit -n 50; exec "$@"',
    "sh",
    process.execPath,
    "-e",
    code,
  ]);
  expect(await new Response(limited.stdout).text()).toBe("EMFILE\n");
});

test("after an abort, no program is started", async () => {
  await using scratch = await scratchFolder();
  const run = {
    argv: ["touch", join(scratch.path, "ran")] as const,
    environment: { PATH: process.env["PATH"] },
  };
  expect(await failureOf(runProgram(run, AbortSignal.abort(new Error("Ctrl-C"))))).toMatchObject({
    message: "Ctrl-C",
  });
  await runProgram({ ...run, argv: ["true"] }, neverAborted);
  expect(await readdir(scratch.path)).toEqual([]);
});

const environment = { PATH: process.env["PATH"] };
const { signal } = new AbortController();

test("an aborted program has time to clean up", async () => {
  await using scratch = await scratchFolder();
  const controller = new AbortController();
  const script = 'trap "echo cleaned >up; exit" TERM; echo up; while :; do sleep 0.05; done';
  const onOutput = () => controller.abort(new Error("Ctrl-C"));
  const run = { argv: ["sh", "-c", script] as const, environment, cwd: scratch.path, onOutput };
  expect((await failureOf(runProgram(run, controller.signal))).message).toBe("Ctrl-C");
  expect(await readFile(join(scratch.path, "up"), "utf8")).toBe("cleaned\n");
});

test("a program gets its input, and need not read it", async () => {
  const stdin = "x".repeat(1_000_000);
  const counted = await runProgram({ argv: ["wc", "-c"], environment, stdin }, signal);
  expect(counted).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^ *1000000\n$/),
    stderr: "",
  });
  const script = "exec <&-; echo why >&2; exit 3";
  expect(await runProgram({ argv: ["sh", "-c", script], environment, stdin }, signal)).toEqual({
    status: 3,
    stdout: "",
    stderr: "why\n",
  });
  expect(await runProgram({ argv: ["cat"], environment }, signal)).toMatchObject({
    status: 0,
    stdout: "",
  });
});

test("an input that cannot be read is an error, and one that is not wanted is none", async () => {
  const broken = async function* (): AsyncGenerator<string> {
    yield "a beginning";
    throw new Error("the disk is broken");
  };
  const run = { argv: ["cat"] as const, environment, stdin: Readable.from(broken()) };
  expect((await failureOf(runProgram(run, signal))).message).toBe("the disk is broken");
  const endless = function* (): Generator<string> {
    for (;;) yield "x".repeat(100_000);
  };
  const unread = {
    argv: ["sh", "-c", "exit 3"] as const,
    environment,
    stdin: Readable.from(endless()),
  };
  expect((await runProgram(unread, signal)).status).toBe(3);
});

test("of a long output, the end is kept", async () => {
  const run = { argv: ["seq", "100000"] as const, environment };
  expect((await runProgram(run, signal)).stdout).toHaveLength(588_895);
  const { stdout } = await runProgram({ ...run, keptCharacters: 1000 }, signal);
  expect(stdout.length).toBeWithin(1000, 2001);
  expect(stdout).toEndWith("\n99999\n100000\n");
});

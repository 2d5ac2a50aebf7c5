/** Programs leave the streams that they share with their caller as they were: the caller's next program can rely on them. */
import { describe, expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { streamKinds, streamsLack, streamsScript } from "../../support/blocking-streams.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { runShell, runShellOnTerminal } from "./start-example.ts";

const kinds = [...(Object.keys(streamKinds) as (keyof typeof streamKinds)[]), "terminal"] as const;
/** What the example reads from a terminal, behind what it asks. */
const typed = { "Password: ": "hunter22\n\x04", "Go on? [y/N] ": "y\n" };

/** Runs lines of bash on streams of one kind. Returns what became of the streams. */
async function afterwards(kind: (typeof kinds)[number], lines: string): Promise<readonly string[]> {
  await using folder = await scratchFolder();
  const own = { FOLDER: folder.path, REPORT: join(folder.path, "report") };
  const script = streamsScript(kind === "terminal" ? "inherited" : kind, lines);
  if (kind === "terminal") await runShellOnTerminal(script, typed, own);
  else await runShell(script, own, "y\n");
  const states = (await readFile(own.REPORT, "utf8")).trim().split("\n");
  expect(states.length).toBeGreaterThanOrEqual(3);
  return [...new Set(states)];
}

const commandLines = [
  "--version",
  "--help",
  "--licenses",
  "",
  "greet --help",
  "greet --tone warm Ada",
  "greet --tone warm Ada --output json -vvv",
  "greet",
  "nonsense",
  "people",
  "big",
  "steps",
  "fail bug",
  "fail x --output json",
  "fail uncaught",
  "secret",
  "ask",
  "child true",
  "completion bash",
  "__complete greet --",
];

describe.skipIf(streamsLack !== undefined)(
  `streams that others share (${streamsLack ?? "here"})`,
  () => {
    test.each(kinds)("stay blocking after each command: %s", async (kind) => {
      const lines = commandLines.map((words) => `$EXAMPLE ${words}; report`).join("\n");
      expect(await afterwards(kind, lines)).toEqual(["blocking"]);
    });

    test.each(kinds)("stay blocking when a signal ends the program: %s", async (kind) => {
      const hold = "rm -f log; EXAMPLE_LOG=$PWD/log $EXAMPLE hold --cleanup 1ms -v & pid=$!";
      const held = "until grep -qs holding log; do sleep 0.05; done; report";
      const lines = ["INT", "TERM", "KILL"].map(
        (signal) => `${hold}; ${held}; kill -${signal} $pid; wait $pid; report`,
      );
      expect(await afterwards(kind, lines.join("\n"))).toEqual(["blocking"]);
    });

    test("leave the caller's next program a pipe that takes everything, however slow its reader is", async () => {
      await using folder = await scratchFolder();
      await writeFile(join(folder.path, "file"), "x".repeat(140_000));
      const each = commandLines.map(
        (words) =>
          `{ $EXAMPLE ${words} </dev/null; cat file || echo "${words}" >>failed; } 2>&1 | { sleep 0.2; tail -c 140000 | tr -d x; }`,
      );
      const { stdout } = await runShell(
        `cd "$FOLDER"; touch failed; ${each.join("\n")}; cat failed`,
        {
          FOLDER: folder.path,
        },
      );
      expect(stdout).toBe("");
    });
  },
);

import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "../../../../src/system/processes/run-program.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const scripts = {
  "ignores the request to end": "trap '' TERM; echo up; for i in 1 2 3 4 5 6 7 8; do sleep 1; done",
  "leaves its output to a child that goes on": "sleep 8 & echo up; wait",
};

test("an aborted program is killed if it doesn't end", async () => {
  const startMs = Date.now();
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
  expect(Date.now() - startMs).toBeLessThan(6_000);
}, 120_000);

test("after an abort, no program is started", async () => {
  await using scratch = await scratchFolder();
  const run = { argv: ["touch", join(scratch.path, "ran")] as const, environment: { PATH: process.env["PATH"] } };
  expect(await failureOf(runProgram(run, AbortSignal.abort(new Error("Ctrl-C"))))).toMatchObject({ message: "Ctrl-C" });
  await runProgram({ ...run, argv: ["true"] }, new AbortController().signal);
  expect(await readdir(scratch.path)).toEqual([]);
});

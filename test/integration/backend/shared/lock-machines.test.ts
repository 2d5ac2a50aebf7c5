/** Only one process at a time works on a cluster's machines. */

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { lockIdleMachines, lockMachines } from "../../../../src/backend/shared/lock-machines.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { scriptedCloud } from "../../../support/scripted-cloud.ts";

test("while somebody works on the machines, others wait, say so, and give up after five minutes", async () => {
  await using folder = await scratchFolder();
  const directory = join(folder.path, "default");
  const { runtime, told, elapsedMs } = scriptedCloud([], []);
  await using _held = await lockMachines({ ...runtime, signal: neverAborted }, directory);
  expect(told).toEqual([]);
  const error = await failureOf(lockMachines({ ...runtime, signal: neverAborted }, directory));
  expect([error.id, error.message, error.hint, error.facts]).toEqual([
    "deadline-passed",
    "Another process is still working on this cluster's machines.",
    `Try again when it has finished. If no such process exists, on this computer or another, remove ${directory}.lock.`,
    { lock: `${directory}.lock` },
  ]);
  expect(elapsedMs()).toBe(300_000);
  expect(told).toEqual(["Waiting for other work on this cluster's machines."]);
});

test("a lock that is wanted only if it is free is not waited for", async () => {
  await using folder = await scratchFolder();
  const directory = join(folder.path, "default");
  const { runtime, elapsedMs } = scriptedCloud([], []);
  {
    await using _held = await lockMachines({ ...runtime, signal: neverAborted }, directory);
    expect(await lockIdleMachines(directory, runtime.clock, neverAborted)).toBeUndefined();
  }
  await using lock = await lockIdleMachines(directory, runtime.clock, neverAborted);
  expect([lock !== undefined, elapsedMs()]).toEqual([true, 0]);
});

test("a lock that cannot be written is an error, not one that somebody holds", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "file");
  await writeFile(file, "");
  const { runtime } = scriptedCloud([], []);
  expect(
    await failureOf(lockIdleMachines(join(file, "default"), runtime.clock, neverAborted)),
  ).toHaveProperty("code", "ENOTDIR");
});

/** What is removed of a creation whose cluster.json tells nothing, by real processes that stand for QEMU. */
import { expect, test } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { machineFiles } from "../../../src/backend/vm/machine-files.ts";
import { lockMachines, removeCreation } from "../../../src/backend/vm/remove-creation.ts";
import { watchMachines } from "../../../src/backend/vm/watch-machines.ts";
import { systemClock } from "../../../src/system/clock.ts";
import { failureOf } from "../../support/failure-of.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const never = new AbortController().signal;

/** A running machine that nobody has written down. */
async function machine(directory: string) {
  const files = machineFiles(directory, { role: "agent", index: 2 });
  await mkdir(files.folder, { recursive: true });
  const words = ["sh", "-c", "while :; do sleep 0.2; done", "qemu", "-pidfile", files.pid];
  const child = Bun.spawn(words, { stdout: "ignore", stderr: "ignore" });
  await writeFile(files.pid, `${child.pid}\n`);
  await writeFile(files.disk, "");
  return child;
}

test("machines are ended without the cluster's facts", async () => {
  await using root = await scratchFolder();
  const directory = join(root.path, "one");
  await using child = await machine(directory);
  await removeCreation(directory, systemClock, never);
  expect(await child.exited).toBe(143);
  expect(await readdir(directory)).toEqual([]);
  expect(await readdir(root.path)).toEqual(["one"]);
});

test("nothing is removed while machines are being started", async () => {
  await using root = await scratchFolder();
  const directory = join(root.path, "one");
  await using child = await machine(directory);
  const launching = await lockMachines(directory, systemClock, never);
  const impatient = new AbortController();
  const removal = failureOf(removeCreation(directory, systemClock, impatient.signal));
  await Bun.sleep(400);
  impatient.abort(new Error("given up"));
  expect((await removal).message).toBe("given up");
  expect(child.exitCode).toBeNull();
  expect(await readdir(directory)).toEqual(["machines"]);
  await launching[Symbol.asyncDispose]();
  await removeCreation(directory, systemClock, never);
  expect(await readdir(directory)).toEqual([]);
});

test("a creation that was removed by somebody else has failed, and says why", async () => {
  await using root = await scratchFolder();
  const failure = await failureOf(watchMachines(root.path, { firmware: "BIOS" }));
  expect(failure.id).toBe("machine-failed");
  expect(failure.message).toBe("The cluster was removed while it was being created.");
});

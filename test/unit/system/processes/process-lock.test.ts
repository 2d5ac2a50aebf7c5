import { expect, test } from "bun:test";
import { readdir, writeFile } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../../../src/system/runtime.ts";
import { acquireProcessLock } from "../../../../src/system/processes/process-identity.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { until } from "../../../support/until.ts";

test("only one at a time has the lock", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "lock");
  const state = { holders: 0, most: 0, waits: 0 };
  const work = async (): Promise<void> => {
    const onWait = (): void => void (state.waits += 1);
    await using _ = await acquireProcessLock(
      path,
      { clock: { ...systemClock, sleep: async () => Bun.sleep(1) }, onWait },
      neverAborted,
    );
    state.holders += 1;
    state.most = Math.max(state.most, state.holders);
    // The first one holds it until all others wait.
    await until("the others wait", () => state.waits === 7);
    state.holders -= 1;
  };
  await Promise.all(Array.from({ length: 8 }, work));
  expect(state).toEqual({ holders: 0, most: 1, waits: 7 });
  expect(await readdir(folder.path)).toEqual([]);
});

test("who waits can be told to stop", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "lock");
  await using _ = await acquireProcessLock(path, { clock: systemClock, onWait: () => {} }, neverAborted);
  const stop = new AbortController();
  const waiting = acquireProcessLock(
    path,
    { clock: systemClock, onWait: () => stop.abort(new Error("enough")) },
    stop.signal,
  );
  expect((await failureOf(waiting)).message).toBe("enough");
});

test.each([
  ["of a process that is gone", JSON.stringify({ host: hostname(), pid: 999_999_999, startedAt: "then" })],
  ["that says nothing", ""],
])("a lock %s is taken over", async (_, text) => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "lock");
  await writeFile(path, text);
  await using lock = await acquireProcessLock(path, { clock: systemClock, onWait: () => {} }, neverAborted);
  expect(lock).toBeDefined();
  expect(await readdir(folder.path)).toEqual(["lock"]);
});

test("where something unreadable is in the lock's place, the system's error says so, instead of an endless wait", async () => {
  await using folder = await scratchFolder();
  const waiting = { clock: systemClock, onWait: () => {} };
  // An attempt that never ends would otherwise keep the test going.
  expect(await failureOf(acquireProcessLock(folder.path, waiting, AbortSignal.timeout(5_000)))).toMatchObject({
    code: "EISDIR",
  });
});

import { expect, test } from "bun:test";
import { lstat, readdir, readlink, rm, symlink } from "node:fs/promises";
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
  await using _ = await acquireProcessLock(
    path,
    { clock: systemClock, onWait: () => {} },
    neverAborted,
  );
  const stop = new AbortController();
  const waiting = acquireProcessLock(
    path,
    { clock: systemClock, onWait: () => stop.abort(new Error("enough")) },
    stop.signal,
  );
  expect((await failureOf(waiting)).message).toBe("enough");
});

test.each([
  ["here", (own: string) => own, ""],
  [
    "elsewhere",
    (own: string) => own.replace(/^[0-9a-f]{8}:[0-9a-f]{8}/, "00000000:00000000"),
    "another computer",
  ],
  [
    "in another container",
    (own: string) => own.replace(/:[0-9a-f]{8}:([0-9]+):/, ":00000000:$1:"),
    "another container",
  ],
  ["that the lock doesn't name", () => "nothing", "another container"],
])(
  "who waits for a process %s learns which lock to remove, if nobody can see whether it lives",
  async (_, change, says) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "lock");
    await using _own = await acquireProcessLock(
      path,
      { clock: systemClock, onWait: () => {} },
      neverAborted,
    );
    const text = await readlink(path);
    await rm(path);
    await symlink(change(text), path);
    const stop = new AbortController();
    const onWait = (advice: string): void => stop.abort(new Error(advice));
    const { message } = await failureOf(
      acquireProcessLock(path, { clock: systemClock, onWait }, stop.signal),
    );
    expect(message).toContain(says);
    expect(message.endsWith(`remove ${path}.`)).toBe(says !== "");
  },
);

test.each([
  ["of a process that is gone", (own: string) => own.replace(/:[0-9]+:/, ":999999999:")],
  [
    "of a process that is gone, from before this computer got another name,",
    (own: string) => own.replace(/^[0-9a-f]{8}/, "00000000").replace(/:[0-9]+:/, ":999999999:"),
  ],
  [
    "of an earlier process with the same number",
    (own: string) => own.replace(/:[0-9a-f]{8}:([0-9a-f]{8})$/, ":01234567:$1"),
  ],
])("a lock %s is taken over", async (_, change) => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "lock");
  const waiting = { clock: systemClock, onWait: () => {} };
  const own = await acquireProcessLock(path, waiting, neverAborted);
  const text = await readlink(path);
  await own[Symbol.asyncDispose]();
  expect(change(text)).not.toBe(text);
  await symlink(change(text), path);
  await using _lock = await acquireProcessLock(path, waiting, neverAborted);
  expect((await readlink(path)).slice(0, -8)).toBe(text.slice(0, -8));
  expect(await readdir(folder.path)).toEqual(["lock"]);
});

test("a lock takes no block of the disk, so that a full one can be cleaned up", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "lock");
  await using _ = await acquireProcessLock(
    path,
    { clock: systemClock, onWait: () => {} },
    neverAborted,
  );
  expect((await lstat(path)).blocks).toBe(0);
  expect((await readlink(path)).length).toBeLessThan(60);
});

test("what is in the lock's place, and is no lock, is named, instead of an endless wait", async () => {
  await using folder = await scratchFolder();
  const waiting = { clock: systemClock, onWait: () => {} };
  expect(await failureOf(acquireProcessLock(folder.path, waiting, neverAborted))).toMatchObject({
    id: "machine-not-set-up",
    message: expect.stringContaining(folder.path),
  });
});

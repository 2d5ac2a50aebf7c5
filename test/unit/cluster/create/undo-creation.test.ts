import type { Creation } from "../../../../src/backend/contract.ts";
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  type FailedCreation,
  type UndoReason,
  undoCreation,
} from "../../../../src/cluster/create.ts";
import { ClusterError } from "../../../../src/errors.ts";
import {
  beginCreation,
  creationDirectory,
  creationFiles,
} from "../../../../src/store/creation-folder.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { scriptedClock } from "../../../support/scripted-clock.ts";

const creationId = "0123456789abcdef";
const failure = {
  error: new ClusterError("machine-failed", "A machine failed."),
  isInterrupted: false,
};
const interruption = { error: new Error("interrupted"), isInterrupted: true };
const taken = {
  error: new ClusterError("cluster-exists", "The id is taken."),
  isInterrupted: false,
};
const busy = new ClusterError("cloud-failed", "The cloud is busy.", { transient: true });
const refused = new ClusterError("cloud-failed", "The cloud refused.");

/** A failed creation, in which these functions replace those that succeed. */
interface Given {
  readonly creation?: Partial<Creation>;
  readonly saveLogs?: FailedCreation["saveLogs"];
  readonly keepOnFailure?: boolean;
  /** Called with the creation's folder when the machines end. */
  readonly onStop?: (directory: string) => Promise<void>;
  /** Whether nothing can be written into the creation's folder. */
  readonly isReadOnly?: boolean;
}

/** A folder in which files can be read, but whose path is too long for the drafts that are written there. Root can write to any other. */
async function readOnlyFolder(parent: string): Promise<string> {
  const [most, name] = [4060, `demo-${creationId}`];
  let root = parent;
  while (root.length + name.length + 1 < most)
    root = join(root, "long".repeat(50)).slice(0, most - name.length - 1);
  await mkdir(join(root, name), { recursive: true });
  return root;
}

/** Undoes a creation. Returns what was called, what the user saw, and what is left of the folder. */
async function undo(given: Given, reason: UndoReason) {
  await using scratch = await scratchFolder();
  const usual = creationDirectory(scratch.path, "demo", creationId);
  await beginCreation(usual, "demo", creationId);
  const root = given.isReadOnly === true ? await readOnlyFolder(scratch.path) : scratch.path;
  const directory = creationDirectory(root, "demo", creationId);
  const files = creationFiles(directory);
  if (root !== scratch.path) await copyFile(creationFiles(usual).creation, files.creation);
  await writeFile(files.privateKey, "a key");
  const calls: string[] = [];
  const call = (name: string) => async () => void calls.push(name);
  const creation = {
    describe: async () => exampleCluster([], "oss"),
    stop: async () => {
      calls.push("stop");
      await given.onStop?.(directory);
    },
    remove: call("remove"),
    remains: () => ({ kept: "one machine.", left: "Machines may be left." }),
    ...given.creation,
  } as unknown as Creation;
  const { progress, steps, told } = recordingProgress();
  const waits: string[] = [];
  const clock = scriptedClock();
  const waiting = (text: string): void => void waits.push(text);
  const detail = (level: number, text: string): void =>
    void told.push(`-${"v".repeat(level)}: ${text}`);
  const runtime = { environment: {}, clock, progress: { ...progress, waiting, detail } };
  const saveLogs = given.saveLogs ?? (async ({ id }) => void calls.push(`save ${id}`));
  await undoCreation(
    { creation, directory, keepOnFailure: given.keepOnFailure ?? false, saveLogs },
    reason,
    runtime,
  );
  const state = existsSync(files.creation)
    ? JSON.parse(await readFile(files.creation, "utf8")).state
    : "no folder";
  return {
    calls,
    steps,
    told,
    waits,
    clock,
    state,
    hasKey: existsSync(files.privateKey),
    hasFolder: existsSync(directory),
  };
}

const removal = ["Remove what was created: done"];

test("after a failure, the logs are saved before the machines end, and the key goes", async () => {
  const { calls, steps, told, state, hasKey } = await undo({}, failure);
  expect(calls).toEqual(["save example", "stop", "remove"]);
  expect({ steps, told, state, hasKey }).toEqual({
    steps: removal,
    told: [],
    state: "removed",
    hasKey: false,
  });
});

test("after an interruption, the machines end before the logs are saved", async () => {
  const { calls, steps, state } = await undo({}, interruption);
  expect(calls).toEqual(["stop", "save example", "remove"]);
  expect({ steps, state }).toEqual({ steps: removal, state: "removed" });
});

test.each([false, true])(
  "what was made for an id that is taken leaves nothing; kept on request: %p",
  async (keep) => {
    const { calls, steps, told, hasFolder } = await undo({ keepOnFailure: keep }, taken);
    expect(calls).toEqual(["stop", "remove"]);
    expect({ steps, told, hasFolder }).toEqual({ steps: removal, told: [], hasFolder: false });
  },
);

test("what was made for a use is removed completely after it, without logs", async () => {
  const { calls, steps, told, hasFolder } = await undo({ keepOnFailure: true }, "used");
  expect({ calls, steps, told, hasFolder }).toEqual({
    calls: ["stop", "remove"],
    steps: removal,
    told: [],
    hasFolder: false,
  });
});

test("a creation that requested nothing leaves nothing, and shows no step", async () => {
  const { calls, steps, hasFolder } = await undo(
    { creation: { remains: () => undefined } },
    failure,
  );
  expect({ calls, steps, hasFolder }).toEqual({ calls: [], steps: [], hasFolder: false });
});

test("on request, the machines are kept with their key and logs", async () => {
  const { calls, steps, told, state, hasKey } = await undo({ keepOnFailure: true }, failure);
  expect({ calls, steps, told }).toEqual({
    calls: ["save example"],
    steps: [],
    told: ["Kept as requested: one machine."],
  });
  expect({ state, hasKey }).toEqual({ state: "finished", hasKey: true });
});

describe.skipIf(process.platform !== "linux")(
  "a folder that can't be written (as long a path as Linux allows)",
  () => {
    test.each([
      [
        { keepOnFailure: true },
        { state: "unfinished", hasKey: true },
        [
          "Kept as requested: one machine.",
          expect.stringMatching(/^The next create .* ENAMETOOLONG/),
        ],
      ],
      [{ creation: { remains: () => undefined } }, { state: "no folder" }, []],
      [{}, { state: "unfinished", hasKey: false, steps: removal }, []],
    ])("does not replace the creation's own failure: %j", async (given, left, told) => {
      expect(await undo({ ...given, isReadOnly: true }, failure)).toMatchObject({ ...left, told });
    });
  },
);

test("what can't be removed is named, and the next create of this id removes it", async () => {
  const { steps, told, state, hasKey } = await undo(
    { creation: { remove: async () => "A network is left." } },
    failure,
  );
  expect({ steps, told }).toEqual({
    steps: ["Remove what was created: failed"],
    told: ["A network is left."],
  });
  expect({ state, hasKey }).toEqual({ state: "abandoned", hasKey: true });
});

test("a removal that fails says why, and what may be left", async () => {
  const stop = async (): Promise<never> => Promise.reject(refused);
  const { calls, told, state, hasKey } = await undo({ creation: { stop } }, interruption);
  expect(told).toEqual(["The removal failed: The cloud refused. Machines may be left."]);
  expect({ calls, state, hasKey }).toEqual({
    calls: ["save example"],
    state: "abandoned",
    hasKey: true,
  });
});

test("logs that can't be saved don't prevent the removal", async () => {
  const { calls, told, state } = await undo(
    { saveLogs: async () => Promise.reject(refused) },
    failure,
  );
  expect({ calls, told, state }).toEqual({
    calls: ["stop", "remove"],
    told: ["The logs are incomplete: The cloud refused."],
    state: "removed",
  });
});

test("a folder that somebody has removed meanwhile is no problem", async () => {
  const onStop = async (directory: string): Promise<void> => rm(directory, { recursive: true });
  expect(await undo({ onStop }, failure)).toMatchObject({
    steps: removal,
    told: [],
    hasFolder: false,
  });
});

test("a cloud that is busy is asked again, at the latest after 15 s, and the user sees why it takes long", async () => {
  const left = { tries: 9 };
  const stop = async (): Promise<void> => {
    left.tries -= 1;
    if (left.tries >= 0) throw busy;
  };
  const { waits, clock, state } = await undo({ creation: { stop } }, failure);
  expect(state).toBe("removed");
  expect(waits).toContain("waiting to terminate the machines: The cloud is busy.");
  expect(waits.at(-1)).toBe("");
  expect(clock.nowMs).toBe(1000 + 2000 + 4000 + 8000 + 5 * 15_000);
});

test("a cloud that stays busy for nine minutes is given up", async () => {
  const remove = async (): Promise<never> => Promise.reject(busy);
  const { waits, clock, told, state } = await undo({ creation: { remove } }, failure);
  expect(told).toEqual(["The removal failed: The cloud is busy. Machines may be left."]);
  expect(state).toBe("abandoned");
  expect(waits).toContain("waiting to remove the rest: The cloud is busy.");
  expect(clock.nowMs).toBeWithin(525_000, 540_001);
});

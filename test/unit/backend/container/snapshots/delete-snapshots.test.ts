import { outside } from "../../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { labelNames } from "../../../../../src/backend/container/records/labels.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import type { SavedSnapshot } from "../../../../../src/backend/container/snapshots/read-snapshots.ts";
import {
  deleteAllSnapshots,
  deleteSnapshots,
  removeImages,
} from "../../../../../src/backend/container/snapshots/remove-snapshots.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scriptedClock } from "../../../../support/scripted-clock.ts";

interface Given {
  /** Images without a name, all of them in use. */
  readonly images: readonly string[];
  /** When the engine no longer has them. */
  readonly untilMs?: number;
  readonly fails?: boolean;
}

const creationId = "0123456789abcdef";
const described = (ids: readonly string[], creation = creationId): string =>
  JSON.stringify(
    ids.map((Id) => ({
      Id,
      Config: { Labels: { [labelNames.snapshot]: "installed", [labelNames.creationId]: creation } },
    })),
  );

/** Deletes all snapshots. Resolves with what is left, and the time that it took. */
async function deleteWith({ images, untilMs = Infinity, fails = false }: Given) {
  const clock = scriptedClock();
  const ask: Engine["ask"] = async ({ words }) => {
    if (fails) throw new Error("docker images failed");
    if (words[0] === "image") return described(words.slice(2));
    return words.includes("--filter=dangling=true") && clock.nowMs < untilMs
      ? images.join("\n")
      : "";
  };
  const engine = { kind: engineKinds.docker, ask, change: async () => "" } as unknown as Engine;
  return [await deleteAllSnapshots(engine, { creationId }, clock, neverAborted), clock.nowMs];
}

const images = ["1".repeat(64), "2".repeat(64)];

test.each<[string, Given, string | undefined, number]>([
  ["are none", { images: [] }, undefined, 0],
  ["are gone after two pauses", { images, untilMs: 600 }, undefined, 600],
  ["stay", { images }, "Left behind: 2 images of its snapshots.", 15_000],
  [
    "can't be listed",
    { images, fails: true },
    `Left behind: snapshots (${outside("docker images failed")}).`,
    15_000,
  ],
])(
  "if images of snapshots %s, that is what is left after some seconds",
  async (_, given, left, ms) => {
    expect(await deleteWith(given)).toEqual([left, ms]);
  },
);

test("an interrupt ends the deletion, even at its limit", async () => {
  const [clock, interrupted] = [scriptedClock(), new AbortController()];
  const ask: Engine["ask"] = async () => {
    clock.nowMs = 15_000;
    interrupted.abort(new Error("interrupted"));
    throw new Error("docker images was killed");
  };
  const engine = { kind: engineKinds.docker, ask } as unknown as Engine;
  const deletion = deleteAllSnapshots(engine, { creationId }, clock, interrupted.signal);
  expect((await failureOf(deletion)).message).toBe("interrupted");
});

test("images go one at a time, children before parents; some are gone or in use, and those in use are left", async () => {
  const [parent, child, used, gone] = [
    "1".repeat(64),
    "2".repeat(64),
    "3".repeat(64),
    "4".repeat(64),
  ] as const;
  const left = new Set<string>([parent, child, used, gone]);
  const running = { now: 0, most: 0 };
  const messageOf = (id: string): string | undefined => {
    if (id === parent && left.has(child)) return "image has dependent child images";
    if (id === used) return "image is in use by a container";
    return id === gone ? "no such image" : undefined;
  };
  const change: Engine["change"] = async ({ words, accepts }) => {
    running.most = Math.max(running.most, ++running.now);
    await Bun.sleep(0);
    running.now -= 1;
    const id = words.at(-1) ?? "";
    const message = messageOf(id);
    if (message !== undefined && accepts?.(`Error: ${message}`) !== true) throw new Error(message);
    if (message === undefined || id === gone) left.delete(id);
    return "";
  };
  const ask: Engine["ask"] = async ({ words }) =>
    words[0] === "image" ? described(words.slice(2)) : [...left].join("\n");
  const engine = { kind: engineKinds.docker, ask, change } as unknown as Engine;
  expect(await removeImages(engine, creationId, neverAborted)).toEqual([used]);
  expect([[...left], running.most]).toEqual([[used], 1]);
});

test("a deleted snapshot's images go once they have no name", async () => {
  const words: string[] = [];
  const change: Engine["change"] = async (call) => String(words.push(call.words.join(" ")));
  const ask: Engine["ask"] = async (call) =>
    call.words[0] === "image"
      ? described(call.words.slice(2))
      : images.slice(words.length).join("\n");
  const engine = { kind: engineKinds.docker, ask, change } as unknown as Engine;
  const snapshot = { creationId, images: [], volumes: [] } as unknown as SavedSnapshot;
  await deleteSnapshots(engine, [snapshot], neverAborted);
  expect(words.toSorted()).toEqual(images.map((image) => `image rm ${image}`));
});

test("images of another creation stay, even if the engine lists them", async () => {
  const ask: Engine["ask"] = async ({ words }) =>
    words[0] === "image" ? described(words.slice(2), "fedcba9876543210") : images.join("\n");
  const change: Engine["change"] = async () => Promise.reject(new Error("removed"));
  const engine = { kind: engineKinds.docker, ask, change } as unknown as Engine;
  expect(await removeImages(engine, creationId, neverAborted)).toEqual([]);
});

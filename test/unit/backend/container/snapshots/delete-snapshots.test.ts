import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { deleteAllSnapshots } from "../../../../../src/backend/container/snapshots/delete-snapshots.ts";

/** Deletes the snapshots on an engine that has these images without a name, all of them in use. */
async function deleteWith(images: readonly string[]) {
  const engine = {
    kind: engineKinds.docker,
    ask: async ({ words }: { readonly words: readonly string[] }) =>
      words.includes("--filter=dangling=true") ? images.join("\n") : "",
    change: async () => "",
  } as unknown as Engine;
  const time = { nowMs: 0 };
  const clock = { now: () => time.nowMs, sleep: async (ms: number) => void (time.nowMs += ms) };
  return deleteAllSnapshots(engine, { creationId: "0123456789abcdef" }, clock, new AbortController().signal);
}

test.each([
  [[], undefined],
  [["1".repeat(64), "2".repeat(64)], "Left behind: 2 images of its snapshots."],
])("with the images %j, it says what is left: %p", async (images, left) => {
  expect(await deleteWith(images)).toEqual(left as string);
});

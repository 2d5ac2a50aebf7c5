import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import {
  ownBytes,
  parseSize,
} from "../../../../../src/backend/container/snapshots/container-snapshots.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

test.each([
  ["0B", 0],
  ["12.3kB", 12_300],
  ["4.61 kB", 4610],
  ["155MB", 155_000_000],
  ["1.2 GB", 1_200_000_000],
  ["3TB", 3_000_000_000_000],
  ["700KB", 700_000],
  ["5", 5],
  ["no size", 0],
  ["", 0],
])("%j is %d bytes", (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});

test("the size of an image that the engine doesn't know is 0, and no error", async () => {
  const ask: Engine["ask"] = async ({ accepts }) => {
    if (accepts?.("Error: no such image") !== true) throw new Error("docker history failed");
    return Promise.resolve("");
  };
  expect(await ownBytes({ ask } as Engine, "gone", neverAborted)).toBe(0);
});

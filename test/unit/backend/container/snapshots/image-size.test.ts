import { expect, test } from "bun:test";
import { parseSize } from "../../../../../src/backend/container/snapshots/image-size.ts";

test.each([
  ["0B", 0],
  ["12.3kB", 12_300],
  ["4.61 kB", 4610],
  ["155MB", 155_000_000],
  ["1.2 GB", 1_200_000_000],
  ["no size", 0],
  ["", 0],
])("%j is %d bytes", (text, bytes) => {
  expect(parseSize(text)).toBe(bytes);
});

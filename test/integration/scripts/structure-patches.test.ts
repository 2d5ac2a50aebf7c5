/** What one more limit or option costs: each patch applies, compiles, and touches few files. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { patches, tryPatches } from "../../../scripts/structure/patches.ts";

test("one more limit of containers, and one more option, touch two source files at most, and compile", async () => {
  const { files, problem } = await tryPatches(join(import.meta.dir, "..", "..", ".."));
  expect(problem).toBeUndefined();
  expect(files).toHaveLength(patches.length);
  for (const [index, { most }] of patches.entries()) expect(files[index]).toBeWithin(1, most + 1);
});

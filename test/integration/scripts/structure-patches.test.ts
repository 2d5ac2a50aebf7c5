/** What one more of such things costs: each patch applies, compiles, and touches few files. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { patches, tryPatches } from "../../../scripts/structure/patches.ts";

test("one more limit, option, fault or question to nodes touches few source files, and compiles", async () => {
  const { files, problem } = await tryPatches(join(import.meta.dir, "..", "..", ".."));
  expect(problem).toBeUndefined();
  expect(files).toHaveLength(patches.length);
  for (const [index, { most }] of patches.entries()) expect(files[index]).toBeWithin(1, most + 1);
});

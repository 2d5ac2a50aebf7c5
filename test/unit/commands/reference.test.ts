import { expect, test } from "bun:test";
import { join } from "node:path";
import { referencePage } from "../../../scripts/reference.ts";

test("the reference has what the programs declare (bun run scripts/reference.ts writes it)", async () => {
  const page = join(import.meta.dir, "../../../src/commands/reference.md");
  expect(await Bun.file(page).text()).toBe(await referencePage());
});

import { expect, test } from "bun:test";
import { join } from "node:path";

/**
 * For a package from git that has one of these scripts, npm runs an install of its own inside the package, then empties the folder into which it has
 * unpacked the package's dependencies: https://github.com/npm/pacote (lib/git.js).
 */
const preparing = ["build", "install", "postinstall", "preinstall", "prepack", "prepare"];

test("no script makes npm prepare the package when it installs it from git", async () => {
  const { scripts } = await Bun.file(join(import.meta.dir, "../../../package.json")).json();
  expect(Object.keys(scripts).filter((name) => preparing.includes(name))).toEqual([]);
  expect(scripts).toHaveProperty("compile");
});

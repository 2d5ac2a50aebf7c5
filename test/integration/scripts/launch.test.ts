/** The launcher of packages: what it runs, and what it says where it can run nothing. test/e2e/release-package.test.ts runs it in packages. */
import { expect, test } from "bun:test";
import { copyFile, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";

const launcher = join(import.meta.dir, "..", "..", "..", "src", "bin", "launch");

test("the launcher says whether no Bun was installed along, or why none of them runs here", async () => {
  await using folder = await scratchFolder();
  const at = (...names: readonly string[]): string => join(folder.path, "a b", ...names);
  await mkdir(at("src", "bin"), { recursive: true });
  await copyFile(launcher, at("src", "bin", "launch"));
  await symlink("src/bin/launch", at("cluster-vm"));
  const launch = () => {
    const { exitCode, stderr } = Bun.spawnSync([at("cluster-vm"), "--version"]);
    return { exitCode, stderr: stderr.toString() };
  };
  expect(launch()).toEqual({
    exitCode: 5,
    stderr:
      "cluster-vm: the package bun was not installed along: install cluster-e2e again, with optional dependencies\n",
  });
  const bin = at("node_modules", "@oven", "bun-linux-x64-musl", "bin");
  await mkdir(bin, { recursive: true });
  const lines = "#!/bin/sh\necho 'Error loading shared library libstdc++.so.6' >&2\nexit 127\n";
  await writeFile(join(bin, "bun"), lines, { mode: 0o755 });
  expect(launch()).toEqual({
    exitCode: 5,
    stderr:
      "cluster-vm: no Bun that was installed along runs on this computer:\n  Error loading shared library libstdc++.so.6\n",
  });
});

test("no variable makes the Bun of a package run other code, or take code from a folder", async () => {
  await using folder = await scratchFolder();
  const at = (name: string): string => join(folder.path, name);
  await writeFile(at("preload.js"), "console.log('other code')");
  await symlink(launcher, at("cluster-vm"));
  const { stdout, stderr } = Bun.spawnSync([at("cluster-vm"), "list", "--quiet"], {
    env: {
      PATH: process.env["PATH"],
      HOME: folder.path,
      BUN_INSTALL: at("install"),
      BUN_OPTIONS: `--preload=${at("preload.js")}`,
      BUN_INSPECT_PRELOAD: at("preload.js"),
      BUN_RUNTIME_TRANSPILER_CACHE_PATH: at("cache"),
    },
  });
  expect([stdout.toString(), stderr.toString()]).toEqual(["", "No clusters.\n"]);
  const others = [".bun", ".cache", "cache", "install"];
  expect((await readdir(folder.path)).filter((name) => others.includes(name))).toEqual([]);
});

/** What must not be released, such as a program built with a Bun in which one bit has changed. */
import { expect, test } from "bun:test";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { repository } from "./support/executable.ts";
import { copyLinked, flippedBit, makeRelease } from "./support/release.ts";
import { shell, tryShell } from "./support/shell.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

/** A copy of this machine's package cache, made sure to hold Bun for Intel Macs; and where in it that is. */
async function packageCache(
  folder: string,
): Promise<{ readonly cache: string; readonly bun: string }> {
  const cache = join(folder, "cache");
  await copyLinked((await shell('"$0" pm cache', [process.execPath], repository)).trim(), cache);
  await shell(
    `mkdir "$1/install" && cp package.json bun.lock bunfig.toml "$1/install" && cd "$1/install" &&
    export BUN_INSTALL_CACHE_DIR="$2" &&
    "$0" install --frozen-lockfile --production --ignore-scripts --silent --os darwin --cpu x64`,
    [process.execPath, folder, cache],
    repository,
  );
  const [bun, ...others] = await Array.fromAsync(
    new Bun.Glob("@oven/bun-darwin-x64@*/bin/bun").scan({ cwd: cache }),
  );
  if (bun === undefined || others.length > 0)
    throw new Error("the cache has no Bun for Intel Macs, or several");
  return { cache, bun: join(cache, bun) };
}

test("a platform for which a fault is found is in no file of the release, and the fault is said", async () => {
  await using folder = await temporaryFolder();
  const { cache, bun } = await packageCache(folder.path);
  await using _flipped = await flippedBit(bun);
  const words = ["--platform", "darwin-x64", "--platform", "linux-x64"];
  await using release = await makeRelease(words, { BUN_INSTALL_CACHE_DIR: cache }, "linux-x64");
  const fault =
    /^Skipped darwin-x64:\n {2}Bun for darwin-x64 has 1 of \d+ page hashes wrong, the first for page \d+$/m;
  expect(release.said).toMatch(fault);
  const names = await readdir(release.files);
  expect(names).toContain(`cluster-e2e-${release.tag}-linux-x64.tar.xz`);
  expect(names.filter((name) => name.includes("darwin"))).toEqual([]);
  for (const name of ["SHA256SUMS", "cluster-e2e.rb", `cluster-e2e-${release.tag}.cdx.json`]) {
    const text = await Bun.file(join(release.files, name)).text();
    expect([name, text.includes("linux-x64"), /darwin|macos/.test(text)]).toEqual([
      name,
      true,
      false,
    ]);
  }
  const uname = join(folder.path, "uname");
  await writeFile(uname, "#!/bin/sh\ncase $1 in -s) echo Darwin ;; *) echo x86_64 ;; esac\n", {
    mode: 0o755,
  });
  const install = 'PATH=$0:$PATH sh "$1/install.sh" --prefix "$0/there"';
  const { status, output } = await tryShell(install, [folder.path, release.files], "/");
  expect(output).toEndWith(`release ${release.tag} does not support darwin-x64, only: linux-x64\n`);
  expect(status).toBe(1);
  expect(await readdir(folder.path)).not.toContain("there");
}, 3_600_000);

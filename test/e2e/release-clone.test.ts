/** The programs, installed from a clone with the page's line. */
import { expect, test } from "bun:test";
import { mkdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { readmeExample } from "./support/readme.ts";
import { commitOfThis } from "./support/release.ts";
import { shell } from "./support/shell.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

test("a clone installs programs, manual pages and completions, again over running ones, and the installer of releases removes them", async () => {
  await using folder = await temporaryFolder();
  const checkout = await commitOfThis(folder.path);
  const home = join(await realpath(folder.path), "home");
  await mkdir(home);
  // The page's line is for a reader whose Bun is set up.
  const bun = 'PATH=$(dirname "$1"):$PATH; export HOME=$0';
  const install = async (): Promise<string> =>
    shell(`${bun}\n${await readmeExample("clone")}`, [home, process.execPath], checkout);
  const printed = await install();
  expect(printed).toContain(join(home, ".local", "bin", "cluster-vm"));
  expect(printed).toContain(`export PATH="${join(home, ".local", "bin")}:$PATH"`);
  const program = join(home, ".local", "bin", "cluster-container");
  expect(await shell('"$0" --version', [program], home)).toMatch(/^0\.0\.0\+[0-9a-f]{12}\n$/);
  const running = Bun.spawn([program, "run", "--help"], { stdout: "ignore" });
  await install();
  expect(await running.exited).toBe(0);
  const files = await shell("cd .local && find . -type f", [], home);
  for (const name of [
    "man/man1/cluster-vm.1",
    "bash-completion/completions/cluster-cloud",
    "fish/vendor_completions.d/cluster-container.fish",
    "zsh/site-functions/_cluster-container",
  ])
    expect(files).toContain(`./share/${name}\n`);
  await shell('sh scripts/install.sh --uninstall --prefix "$0/.local"', [home], checkout);
  expect(await shell("ls -d .local 2>/dev/null || :", [], home)).toBe("");
});

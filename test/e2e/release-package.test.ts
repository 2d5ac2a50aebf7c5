/** The programs, installed by package managers from a version tag of a repository that is served on loopback. */
import { expect, test } from "bun:test";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { commitAndTag } from "../../scripts/release/checkout.ts";
import { findNode } from "../support/find-node.ts";
import { repository } from "./support/executable.ts";
import { readmeExample } from "./support/readme.ts";
import { commitOfThis, serveFolder } from "./support/release.ts";
import { shell, tryShell } from "./support/shell.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";

const [older, newer] = ["2020.02.03.4", "2020.02.03.5"] as const;

/** Lacks Bun; what packages need to be made known to `npm` and `git` stays as it is on this machine. */
const installers = [
  {
    name: "npm",
    lack: Bun.which("npm") === null ? "npm is not here" : undefined,
    set: "export npm_config_prefix=$PWD/there npm_config_update_notifier=false",
    uninstall: "npm uninstall -g cluster-e2e",
  },
  {
    name: "bun",
    lack: undefined,
    set: "export BUN_INSTALL=$PWD/there BUN_INSTALL_CACHE_DIR=$PWD/cache",
    uninstall: "bun remove -g cluster-e2e",
  },
] as const;

/** Tags the checkout's commit as `bun run release` would, and makes what is served know it. */
async function tagged(checkout: string, tag: string): Promise<void> {
  await shell(`sed -i 's/^## Unreleased$/&\\n\\n## ${tag}/' CHANGELOG.md`, [], checkout);
  const build = `console.log(await (await import("./scripts/build-library.ts")).buildLibrary("${tag}"))`;
  const library = await shell('"$0" -e "$1"', [process.execPath, build], checkout);
  await commitAndTag(checkout, tag, "- A thing.", [library.trim()]);
  await shell(
    `[ -d ../repo.git ] || git init -q --bare -b main ../repo.git
    git push -q ../repo.git main ${tag} && git -C ../repo.git update-server-info`,
    [],
    checkout,
  );
}

for (const { name, lack, set, uninstall } of installers) {
  const state = lack ?? "here";
  // Shows R13, R16.
  test.skipIf(lack !== undefined)(
    `${name} installs from a tag, upgrades to another, and uninstalls by name (${state})`,
    async () => {
      await using folder = await temporaryFolder();
      const checkout = await commitOfThis(folder.path);
      await Bun.write(join(checkout, "src", "only-in-older.ts"), "");
      await shell("git add src && git commit -q -m 'Add what goes again'", [], checkout);
      await tagged(checkout, older);
      await using server = serveFolder(folder.path);
      const home = join(folder.path, "home");
      await mkdir(home);
      const program = join(home, "there", "bin", "cluster-cloud");
      const install = async (tag: string): Promise<void> => {
        const facts = `export TAG=${tag} REPOSITORY=${server.url}/repo.git; ${set}`;
        await shell(`${facts}\n${await readmeExample(name)}`, [], home);
        const version = await shell(
          'env -i PATH=/nowhere-else:/usr/bin:/bin "$0" --version',
          [program],
          home,
        );
        expect(version).toBe(`${tag}\n`);
      };
      await install(older);
      expect(await namesIn(home, "only-in-older.ts")).not.toBe("");
      // Once more, with all packages in the installer's cache: npm is then fast enough to run into its own faults.
      await shell(`${set}\n${uninstall}`, [], home);
      await install(older);
      await shell(
        "git rm -q src/only-in-older.ts && git commit -q -m 'Take it away'",
        [],
        checkout,
      );
      await tagged(checkout, newer);
      await install(newer);
      expect(await namesIn(home, "only-in-older.ts")).toBe("");
      // Another's folder: nothing of it runs, and neither Node nor Bun is on the PATH.
      await shell(
        "echo 'preload = [\"./evil.ts\"]' >bunfig.toml && echo 'console.log(1)' >evil.ts",
        [],
        home,
      );
      await Bun.write(
        join(home, "tsconfig.json"),
        '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}',
      );
      expect(await shell('env -i PATH=/usr/bin:/bin "$0" --version', [program], home)).toBe(
        `${newer}\n`,
      );
      const wrong = await tryShell(
        'env -i PATH=/usr/bin:/bin "$0" inspect --node',
        [program],
        home,
      );
      expect(wrong).toMatchObject({ status: 2, output: expect.stringContaining("[bad-usage]") });
      await expectTestedPackages(join(home, "there"));
      if (name === "npm") await expectLibraryForNode(home, newer);
      await shell(`${set}\n${uninstall}`, [], home);
      expect(await namesIn(home, "cluster-*")).toBe("");
    },
  );
}

/** All packages are those with which the programs were tested. */
async function expectTestedPackages(folder: string): Promise<void> {
  const lock = await Bun.file(join(import.meta.dir, "../../bun.lock")).text();
  const tested = new Set(
    [...lock.matchAll(/^ {4}"[^"]+": \["([^"]+)",/gm)].map(([, id = ""]) => id),
  );
  const script = `find . -name package.json | grep -E 'node_modules/(@[^/]+/)?[^/]+/package.json$'`;
  const places = (await shell(script, [], folder)).trim().split("\n");
  const files = await Promise.all(
    places.map(async (place) => Bun.file(join(folder, place)).json()),
  );
  const found = files
    .map(({ name, version }) => `${name}@${version}`)
    .filter((id) => !id.startsWith("cluster-e2e@"));
  expect(found.length).toBeGreaterThan(40);
  expect(found.filter((id) => !tested.has(id))).toEqual([]);
}

/** The installed package is a library for Node too, with its types. */
async function expectLibraryForNode(home: string, version: string): Promise<void> {
  const folder = join(home, "project");
  await mkdir(folder);
  await symlink(join(home, "there", "lib", "node_modules"), join(folder, "node_modules"));
  const script = `
    import { Cluster, ClusterError, CloudBackend } from "cluster-e2e";
    const backend = new CloudBackend({ region: "us-west-2", linuxDistribution: "debian-12" });
    const cancelSignal = AbortSignal.abort(new Error("no longer wanted"));
    await Cluster.create(backend, { variant: "oss", cancelSignal }).catch((error) => console.log(error.message));
    console.log(typeof ClusterError);`;
  await Bun.write(join(folder, "use.mts"), script.replace("(error)", "(error: Error)"));
  const compilerOptions = {
    strict: true,
    module: "nodenext",
    target: "es2022",
    lib: ["es2022", "esnext.disposable"],
    types: ["node"],
    typeRoots: [join(repository, "node_modules", "@types")],
  };
  await Bun.write(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions }));
  await shell('exec "$0" --project .', [join(repository, "node_modules/.bin/tsc")], folder);
  const node = await findNode();
  if (node !== undefined)
    expect(await shell('env -i PATH=/usr/bin:/bin HOME=$PWD "$0" use.mjs', [node], folder)).toBe(
      "no longer wanted\nfunction\n",
    );
  const library = join(folder, "node_modules", "cluster-e2e", "dist", "library");
  expect(await Bun.file(join(library, "version.js")).text()).toContain(`"${version}"`);
  expect(await Bun.file(join(library, "index.d.ts")).exists()).toBe(true);
}

/** What has such a name in the installer's own folder, packages' folders and links included. */
const namesIn = (home: string, name: string): Promise<string> =>
  shell('find there -name "$0"', [name], home);

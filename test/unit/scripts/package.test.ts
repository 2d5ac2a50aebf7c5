import { expect, test } from "bun:test";
import { join } from "node:path";

const root = join(import.meta.dir, "../../..");

interface Needs {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

const packageFile = async (): Promise<Needs & { readonly scripts: object }> =>
  Bun.file(join(root, "package.json")).json();
const needsOf = ({
  dependencies,
  optionalDependencies,
}: Needs): Readonly<Record<string, string>> => ({
  ...dependencies,
  ...optionalDependencies,
});

/**
 * For a package from git that has one of these scripts, npm runs an install of its own inside the package, then empties the folder into which it has
 * unpacked the package's dependencies: https://github.com/npm/pacote (lib/git.js).
 */
const preparing = ["build", "install", "postinstall", "preinstall", "prepack", "prepare"];

test("no script makes npm prepare the package when it installs it from git", async () => {
  const { scripts } = await packageFile();
  expect(Object.keys(scripts).filter((name) => preparing.includes(name))).toEqual([]);
  expect(scripts).toHaveProperty("compile");
});

// npm reads no lock file of a package from git. Only Bun's own packages have exact versions of theirs.
test("each package that the programs need, directly or through others, is a dependency with the version of the lock file", async () => {
  const lock = (await Bun.file(join(root, "bun.lock")).text()).replaceAll(/,(\s*[}\]])/g, "$1");
  const { packages } = JSON.parse(lock) as {
    packages: Record<string, [id: string, registry: string, Needs]>;
  };
  const direct = needsOf(await packageFile());
  const reached = new Map<string, string>();
  const pending = Object.keys(direct);
  for (const name of pending) {
    const [id, , needs] = packages[name]!;
    if (!name.startsWith("@oven/")) reached.set(name, id.slice(name.length + 1));
    pending.push(...Object.keys(needsOf(needs)).filter((each) => !pending.includes(each)));
    // A second version of a package would stand below the one that needs it.
    expect(Object.keys(packages).filter((place) => place.startsWith(`${name}/`))).toEqual([]);
  }
  expect(reached.size).toBeGreaterThan(40);
  expect(direct).toEqual(Object.fromEntries(reached));
});

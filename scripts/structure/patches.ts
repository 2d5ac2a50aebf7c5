import { cp, mkdtemp, readFile, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What is added, as the patch is named, and the most source files that it may touch. */
export const patches = [
  { name: "limit-of-containers", most: 2 },
  { name: "option-of-containers", most: 2 },
  { name: "kind-of-fault", most: 3 },
  { name: "question-to-nodes", most: 2 },
] as const;

interface Outcome {
  /** The number of files of `src` that each patch touches. */
  readonly files: readonly number[];
  /** Undefined if all apply, and the type checker accepts the result. */
  readonly problem: string | undefined;
}

/** Applies all patches to a copy of the sources, and checks their types. */
export async function tryPatches(root: string): Promise<Outcome> {
  const paths = patches.map(({ name }) =>
    join(root, "scripts", "structure", "patches", `${name}.patch`),
  );
  const texts = await Promise.all(paths.map(async (path) => readFile(path, "utf8")));
  const files = texts.map((text) => new Set(text.match(/^\+\+\+ b\/src\/.*$/gm)).size);
  const copy = await mkdtemp(join(tmpdir(), "cluster-e2e-structure-"));
  try {
    for (const path of ["src", "package.json", "tsconfig.json"])
      await cp(join(root, path), join(copy, path), { recursive: true });
    await symlink(join(root, "node_modules"), join(copy, "node_modules"));
    const applied = await run(["git", "apply", ...paths], copy);
    const checker = join(root, "node_modules", ".bin", "tsc");
    const problem = applied ?? (await run([process.execPath, "--bun", checker, "--noEmit"], copy));
    return { files, problem };
  } finally {
    await rm(copy, { recursive: true, force: true });
  }
}

/** Returns what the program printed, if it failed. */
async function run(argv: readonly string[], cwd: string): Promise<string | undefined> {
  const child = Bun.spawn([...argv], { cwd, stdout: "pipe", stderr: "pipe", env: process.env });
  const output = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return (await child.exited) === 0 ? undefined : output.join("").trim();
}

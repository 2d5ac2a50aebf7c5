import { chmod, cp, mkdir, mkdtemp, rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkoutFiles } from "../checkout-files.ts";
import type { Mutant } from "./find-mutants.ts";

/** A copy of the checkout in which mutants are tried. Disposing of it removes the copy. */
export interface TreeCopy extends AsyncDisposable {
  readonly path: string;
  /** The folder for temporary files of the tests. */
  readonly temporary: string;
  /** Resolves with a function that undoes the change. */
  apply(mutant: Mutant): Promise<() => Promise<void>>;
}

export async function copyTree(root: string): Promise<TreeCopy> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-mutate."));
  // Some tests run programs as the user nobody.
  await chmod(folder, 0o711);
  const [path, temporary] = [join(folder, "tree"), join(folder, "tmp")];
  for (const file of await checkoutFiles(root)) {
    await mkdir(dirname(join(path, file)), { recursive: true });
    await cp(join(root, file), join(path, file), { verbatimSymlinks: true });
  }
  await mkdir(temporary);
  await chmod(temporary, 0o1777);
  await symlink(join(root, "node_modules"), join(path, "node_modules"));
  return {
    path,
    temporary,
    apply: async ({ path: file, start, end, after }) => {
      const text = await Bun.file(join(path, file)).text();
      await Bun.write(join(path, file), text.slice(0, start) + after + text.slice(end));
      return async () => void (await Bun.write(join(path, file), text));
    },
    [Symbol.asyncDispose]: async () => rm(folder, { recursive: true, force: true }),
  };
}

import { join } from "node:path";
import type { Mutant } from "./find-mutants.ts";
import type { TreeCopy } from "./tree-copy.ts";

/** Returns the mutants that the compiler rejects. Mutants of different files are checked in one run of the compiler. */
export async function refusedByTypes(
  copy: TreeCopy,
  mutants: readonly Mutant[],
): Promise<ReadonlySet<Mutant>> {
  const refused = new Set<Mutant>();
  for (const batch of inBatches(mutants)) {
    const undo: (() => Promise<void>)[] = [];
    for (const mutant of batch) undo.push(await copy.apply(mutant));
    const faulty = await faultyFiles(copy.path);
    for (const revert of undo) await revert();
    for (const mutant of batch) if (faulty.has(mutant.path)) refused.add(mutant);
  }
  return refused;
}

/** A batch has at most one mutant of each file. */
export function inBatches(mutants: readonly Mutant[]): readonly (readonly Mutant[])[] {
  const batches: Mutant[][] = [];
  for (const mutant of mutants) {
    const free = batches.find((batch) => batch.every(({ path }) => path !== mutant.path));
    if (free === undefined) batches.push([mutant]);
    else free.push(mutant);
  }
  return batches;
}

async function faultyFiles(root: string): Promise<ReadonlySet<string>> {
  const compiler = join(root, "node_modules", ".bin", "tsc");
  const child = Bun.spawn(
    [process.execPath, "--bun", compiler, "--project", root, "--pretty", "false"],
    {
      cwd: root,
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  const output = await new Response(child.stdout).text();
  return new Set(
    [...output.matchAll(/^(\S+\.ts)\(\d+,\d+\): error/gm)].map(([, path = ""]) => path),
  );
}

import type { TestFile } from "./baseline.ts";
import { chooseTests } from "./choose-tests.ts";
import type { Mutant } from "./find-mutants.ts";
import type { Verdict } from "./report.ts";
import { runTests } from "./run-tests.ts";
import type { TreeCopy } from "./tree-copy.ts";

/** Runs the tests that execute a mutant until one of them fails. A failure counts only if it happens twice. */
export async function judgeMutant(
  copy: TreeCopy,
  { mutant, tests }: { readonly mutant: Mutant; readonly tests: readonly TestFile[] },
  signal: AbortSignal,
): Promise<Verdict> {
  const groups = chooseTests(mutant, tests);
  if (groups.length === 0) return { mutant, by: "nothing", note: "no test reaches it" };
  const undo = await copy.apply(mutant);
  try {
    for (const group of groups) {
      const outcome = await tryTwice(copy, group, signal);
      const [note = ""] = group.map(({ path }) => path);
      if (outcome === "timed out") return { mutant, by: "time limit", note };
      const by = note.startsWith("test/unit/") ? "unit" : "integration";
      if (outcome === "failed") return { mutant, by, note };
    }
  } finally {
    await undo();
  }
  const files = groups.flat().length;
  return { mutant, by: "nothing", note: `${files} test ${files === 1 ? "file" : "files"}` };
}

async function tryTwice(copy: TreeCopy, group: readonly TestFile[], signal: AbortSignal) {
  const usual = group.reduce((sum, { seconds }) => sum + seconds, 0);
  const files = group.map(({ path }) => path);
  const options = { limitSeconds: 30 + 4 * usual, moreArgs: [] };
  const first = await runTests(copy, files, options, signal);
  return first.outcome === "failed"
    ? (await runTests(copy, files, options, signal)).outcome
    : first.outcome;
}

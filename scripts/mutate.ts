/**
 * Changes the sources in many small ways, one at a time, and checks which changes the compiler, the unit tests and the
 * integration tests detect. Works on copies of the checkout in a temporary folder. Prints how many mutants were killed and
 * how many survived in each layer, and writes each verdict to dist/mutate.json. A mutant that the compiler rejects or a unit
 * test kills takes about a second, others up to four minutes.
 * Usage: bun run mutate [FOLDER OR FILE] [--count 150] [--seed 1] [--jobs 2]
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { listTestFiles, measureTestFile, type TestFile } from "./mutate/baseline.ts";
import { refusedByTypes } from "./mutate/check-types.ts";
import { findMutants, type Mutant } from "./mutate/find-mutants.ts";
import { judgeMutant } from "./mutate/judge-mutant.ts";
import { pick } from "./mutate/pick.ts";
import { describeMutant, renderReport, type Verdict } from "./mutate/report.ts";
import { copyTree, type TreeCopy } from "./mutate/tree-copy.ts";

const root = join(import.meta.dir, "..");
const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    count: { type: "string", default: "150" },
    seed: { type: "string", default: "1" },
    jobs: { type: "string", default: "2" },
  },
});

/** Mutants of the folder or file `src/PLACE`, or of all sources. */
async function chooseMutants({ path: tree }: TreeCopy, place: string): Promise<readonly Mutant[]> {
  const within = join("src", place.replace(/^src(?:\/|$)/, ""));
  const paths = [...new Bun.Glob("src/**/*.ts").scanSync(tree)]
    .filter(
      (path) => path === within || path.startsWith(within.endsWith("/") ? within : `${within}/`),
    )
    .toSorted();
  if (paths.length === 0) throw new Error(`no sources below ${within}`);
  const found: Mutant[] = [];
  for (const path of paths)
    found.push(...findMutants(path, await Bun.file(join(tree, path)).text()));
  return pick(found, Number(values.count), Number(values.seed));
}

/** Processes all entries, one at a time in each copy. */
async function onCopies<T, R>(
  copies: readonly TreeCopy[],
  entries: readonly T[],
  work: (copy: TreeCopy, entry: T) => Promise<R>,
): Promise<readonly R[]> {
  const results: R[] = [];
  const waiting = entries.entries();
  const worker = async (copy: TreeCopy): Promise<void> => {
    for (const [index, entry] of waiting) results[index] = await work(copy, entry);
  };
  await Promise.all(copies.map(worker));
  return results;
}

async function measure(
  copies: readonly TreeCopy[],
  paths: readonly string[],
  signal: AbortSignal,
): Promise<readonly TestFile[]> {
  console.error(`measuring ${paths.length} test files`);
  // On a busy computer a test may fail once.
  const tests = await onCopies(copies, paths, async (copy, path) => {
    const first = await measureTestFile(copy, path, signal);
    return first.passes ? first : await measureTestFile(copy, path, signal);
  });
  const failing = tests.filter(({ passes }) => !passes);
  for (const { path } of failing)
    console.error(`left out, since it fails without any mutant: ${path}`);
  return tests;
}

async function main(signal: AbortSignal): Promise<void> {
  await using stack = new AsyncDisposableStack();
  const first = stack.use(await copyTree(root));
  const copies = [first];
  while (copies.length < Number(values.jobs)) copies.push(stack.use(await copyTree(root)));
  const mutants = await chooseMutants(first, positionals[0] ?? "");
  console.error(`checking the types of ${mutants.length} mutants`);
  const refused = await refusedByTypes(first, mutants);
  const tests = await measure(copies, listTestFiles(first.path), signal);
  const verdicts = await onCopies(copies, mutants, async (copy, mutant): Promise<Verdict> => {
    if (refused.has(mutant)) return { mutant, by: "types", note: "" };
    const verdict = await judgeMutant(copy, { mutant, tests }, signal);
    const outcome = verdict.by === "nothing" ? "survived" : `killed by ${verdict.by}`;
    console.error(`${outcome}: ${describeMutant(mutant)}  (${verdict.note})`);
    return verdict;
  });
  console.log(renderReport(verdicts));
  await Bun.write(join(root, "dist", "mutate.json"), `${JSON.stringify(verdicts, undefined, 2)}\n`);
}

const interrupts = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.once(name, () => interrupts.abort(new Error(name)));
await main(interrupts.signal);

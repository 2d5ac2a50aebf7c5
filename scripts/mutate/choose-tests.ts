import { dirname } from "node:path";
import { reaches, type TestFile } from "./baseline.ts";
import type { Mutant } from "./find-mutants.ts";

/**
 * Integration tests that would take longer in all are left out, because a line that every test executes would take many
 * minutes. With a lower limit, most tests of a layer such as the cloud's would be left out, and mutants that they kill
 * would be listed as survivors.
 */
const mostSeconds = 120;

/**
 * Returns groups of tests: first the unit tests, which run together, then each integration test, those of the mutant's
 * own layer first, then quick ones. If no test is known to execute the mutant, returns the tests of its layer that
 * start programs, because these may execute it.
 */
export function chooseTests(
  mutant: Mutant,
  tests: readonly TestFile[],
): readonly (readonly TestFile[])[] {
  const passing = tests.filter(({ passes }) => passes);
  const reaching = passing.filter((test) => reaches(test, mutant));
  const starting = passing.filter((test) => test.hasPrograms && nearness(test, mutant) > 0);
  const fit = reaching.length > 0 ? reaching : starting;
  const units = fit.filter(({ path }) => path.startsWith("test/unit/"));
  const others = fit
    .filter(({ path }) => path.startsWith("test/integration/"))
    .toSorted(
      (one, other) =>
        nearness(other, mutant) - nearness(one, mutant) || one.seconds - other.seconds,
    );
  const chosen: TestFile[] = [];
  for (const test of others) {
    const spent = chosen.reduce((sum, { seconds }) => sum + seconds, 0);
    if (chosen.length < 2 || spent + test.seconds <= mostSeconds) chosen.push(test);
  }
  return [...(units.length > 0 ? [units] : []), ...chosen.map((test) => [test])];
}

/** The number of folders, from the top, that the test and the mutant's file have in common. */
function nearness({ path }: TestFile, mutant: Mutant): number {
  const [folders, others] = [
    dirname(path).split("/").slice(2),
    dirname(mutant.path).split("/").slice(1),
  ];
  const differs = folders.findIndex((folder, index) => folder !== others[index]);
  return differs === -1 ? folders.length : differs;
}

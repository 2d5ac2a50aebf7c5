import { dirname } from "node:path";
import { reaches, type TestFile } from "./baseline.ts";
import type { Mutant } from "./find-mutants.ts";

/**
 * Integration tests of a mutant beyond that are left out: a line that everything runs would take many minutes. With less, most tests of a room such as
 * the cloud's would be left out, and mutants that these detect would be listed.
 */
const mostSeconds = 120;

/**
 * Unit tests, which run together, and integration tests one after the other: those of the mutant's own room come first, then quick ones. Where no test
 * is seen to reach the mutant, tests of its room that start programs may do so all the same.
 */
export function chooseTests(mutant: Mutant, tests: readonly TestFile[]): readonly (readonly TestFile[])[] {
  const passing = tests.filter(({ passes }) => passes);
  const reaching = passing.filter((test) => reaches(test, mutant));
  const starting = passing.filter((test) => test.hasPrograms && nearness(test, mutant) > 0);
  const fit = reaching.length > 0 ? reaching : starting;
  const units = fit.filter(({ path }) => path.startsWith("test/unit/"));
  const others = fit
    .filter(({ path }) => path.startsWith("test/integration/"))
    .toSorted((one, other) => nearness(other, mutant) - nearness(one, mutant) || one.seconds - other.seconds);
  const chosen: TestFile[] = [];
  for (const test of others) {
    const spent = chosen.reduce((sum, { seconds }) => sum + seconds, 0);
    if (chosen.length < 2 || spent + test.seconds <= mostSeconds) chosen.push(test);
  }
  return [...(units.length > 0 ? [units] : []), ...chosen.map((test) => [test])];
}

/** How many folders, from the top, the test and the mutant's file have in common. */
function nearness({ path }: TestFile, mutant: Mutant): number {
  const [folders, others] = [dirname(path).split("/").slice(2), dirname(mutant.path).split("/").slice(1)];
  const differs = folders.findIndex((folder, index) => folder !== others[index]);
  return differs === -1 ? folders.length : differs;
}

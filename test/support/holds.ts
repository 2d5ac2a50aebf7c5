import * as fc from "fast-check";

/** The same for every run, so that nobody's change fails by chance. `CLUSTER_E2E_SEED=N` tries other cases; a failure prints the seed and the smallest case. */
const seed = Number(process.env["CLUSTER_E2E_SEED"] ?? "20261127");

/** Checks a property for a fixed number of cases. `check` throws, or rejects, if the property doesn't hold. */
export async function holds<Values extends [unknown, ...unknown[]]>(
  cases: number,
  arbitraries: { [Index in keyof Values]: fc.Arbitrary<Values[Index]> },
  check: (...values: Values) => unknown,
): Promise<void> {
  const property = fc.asyncProperty(...arbitraries, async (...values: Values) => {
    await check(...values);
  });
  await fc.assert(property, { seed, numRuns: cases });
}

/** Texts of any characters, with those that mean something to shells, tar, YAML, terminals and SSH more often than by chance. */
export const anyText = fc.string({
  unit: fc.oneof(
    fc.constantFrom(...`'"\\$\`\n\r\t ;&|*?!#~=-[]{}()<>%/.:,@`.split("")),
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
  ),
  maxLength: 40,
});

/** A text in pieces, as a stream may deliver it. Also cuts between the halves of a character. */
export function pieces(text: string, cuts: readonly number[]): readonly string[] {
  const positions = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].toSorted(
    (one, other) => one - other,
  );
  return [...positions, text.length].map((end, index) =>
    text.slice(positions[index - 1] ?? 0, end),
  );
}

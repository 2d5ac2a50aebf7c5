/** Returns the numbers of a release such as `1.13.4` or `v2.1.0-beta3`; undefined if it doesn't begin with a dotted number. */
export function releaseNumbers(release: string): readonly number[] | undefined {
  const text = /^v?(\d+(?:\.\d+)+)/.exec(release)?.[1];
  return text?.split(".").map(Number);
}

/** Negative if the first release is older, positive if it is newer. Missing numbers count as 0: 2.1 equals 2.1.0. */
export function compareReleases(first: readonly number[], second: readonly number[]): number {
  const length = Math.max(first.length, second.length);
  const differences = Array.from({ length }, (_, index) => (first[index] ?? 0) - (second[index] ?? 0));
  return differences.find((difference) => difference !== 0) ?? 0;
}

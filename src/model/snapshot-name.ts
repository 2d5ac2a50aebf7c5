/** What is wrong with a snapshot's name as one sentence, or `undefined`. */
export const snapshotNameProblem = (given: string): string | undefined =>
  parseSnapshotName(given) === undefined
    ? "a snapshot's name has 1 to 63 lower-case letters, digits, _, . and -, and begins with a letter or digit"
    : undefined;

export function parseSnapshotName(found: unknown): string | undefined {
  return typeof found === "string" && /^[a-z0-9][a-z0-9_.-]{0,62}$/.test(found) ? found : undefined;
}

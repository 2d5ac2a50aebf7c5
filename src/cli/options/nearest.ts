/** The candidate that a mistyped word probably meant; undefined if none is near enough to suggest. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const allowed = Math.max(1, Math.floor(bare(word).length / 3));
  const ranked = candidates
    .map((candidate) => ({ candidate, distance: editDistance(word.toLowerCase(), candidate.toLowerCase()) }))
    .toSorted((one, other) => one.distance - other.distance);
  const [best] = ranked;
  if (best !== undefined && best.distance <= allowed) return best.candidate;
  // `--region` for `--cloud-region`: too many letters differ, yet the meaning is plain.
  return bare(word).length < 4 ? undefined : candidates.find((candidate) => bare(candidate).includes(bare(word)));
}

const bare = (word: string): string => word.replace(/^-+/, "").toLowerCase();

/** Counts insertions, deletions, replacements and swaps of neighbours (optimal string alignment). */
function editDistance(one: string, other: string): number {
  const rows: number[][] = [Array.from({ length: other.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number): number => rows[row]?.[column] ?? Number.POSITIVE_INFINITY;
  for (let row = 1; row <= one.length; row += 1) {
    const current = [row];
    rows.push(current);
    for (let column = 1; column <= other.length; column += 1) {
      const replaced = at(row - 1, column - 1) + (one[row - 1] === other[column - 1] ? 0 : 1);
      const swaps = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      const swapped = swaps ? at(row - 2, column - 2) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min(replaced, swapped, at(row - 1, column) + 1, at(row, column - 1) + 1));
    }
  }
  return at(one.length, other.length);
}

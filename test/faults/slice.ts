/** The usual size of a day's part, in seconds of faults. With four at a time, it takes about a quarter of that. */
export const usualSliceSeconds = 300;
/** Only full runs inject faults that take longer. */
const longestSeconds = 60;

interface Timed {
  readonly name: string;
  readonly seconds: number;
}

/** Returns the faults of one day. The following days have others, until each fault has had its turn. */
export function sliceOf<Fault extends Timed>(
  faults: readonly Fault[],
  day: Date,
  sliceSeconds: number,
): readonly Fault[] {
  const short = faults.filter(({ seconds }) => seconds <= longestSeconds);
  const slices = Math.max(
    1,
    Math.ceil(short.reduce((sum, { seconds }) => sum + seconds, 0) / sliceSeconds),
  );
  const turn = Math.floor(day.getTime() / 86_400_000) % slices;
  return short.filter((_, index) => index % slices === turn);
}

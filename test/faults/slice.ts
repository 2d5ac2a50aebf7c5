/** How much of the campaign a day's slice is, in seconds of faults: with four at once, about a quarter of that passes. */
const sliceSeconds = 300;
/** A fault that takes longer is left to full runs. */
const longestSeconds = 60;

interface Timed {
  readonly name: string;
  readonly seconds: number;
}

/** The faults of one day. The days that follow have others, until each has had its turn. */
export function sliceOf<Fault extends Timed>(faults: readonly Fault[], day: Date): readonly Fault[] {
  const short = faults.filter(({ seconds }) => seconds <= longestSeconds);
  const slices = Math.max(1, Math.ceil(short.reduce((sum, { seconds }) => sum + seconds, 0) / sliceSeconds));
  const turn = Math.floor(day.getTime() / 86_400_000) % slices;
  return short.filter((_, index) => index % slices === turn);
}

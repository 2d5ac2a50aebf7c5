/** How the bench runs programs and says what it measured. Machines are noisy: everything is a ratio against a reference of the same run. */

/** What several rounds gave: their median, and the quartiles, between which the middle half of the rounds lies. */
interface Spread {
  readonly median: number;
  readonly lower: number;
  readonly upper: number;
}

export interface Row {
  readonly what: string;
  /** With its unit, and with its spread where there were several rounds. */
  readonly value: string;
  readonly reference: string;
  /** Value by reference, both of the same round. */
  readonly ratio: Spread;
  /** What the project has promised, where it has. */
  readonly limit?: number;
}

/** How values are shown. */
export interface Unit {
  readonly name: string;
  readonly factor: number;
  readonly digits: number;
}

export const inMilliseconds: Unit = { name: " ms", factor: 1000, digits: 1 };
export const inSeconds: Unit = { name: " s", factor: 1, digits: 2 };
export const inMegabytes: Unit = { name: " MB", factor: 1, digits: 1 };

export const median = (values: readonly number[]): number => quantile(values, 1 / 2);

const spreadOf = (values: readonly number[]): Spread => ({
  median: median(values),
  lower: quantile(values, 1 / 4),
  upper: quantile(values, 3 / 4),
});

/** Between two values, the share of each counts. */
function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((left, right) => left - right);
  const place = (sorted.length - 1) * part;
  const [lower = Number.NaN, upper = lower] = sorted.slice(Math.floor(place));
  return lower + (upper - lower) * (place % 1);
}

const shown = (value: number, { factor, digits }: Unit): string => (value * factor).toFixed(digits);

/** For example "27.1 ms (26.5 to 28.0)". */
function shownSpread(values: readonly number[], unit: Unit): string {
  const { median: middle, lower, upper } = spreadOf(values);
  const text = `${shown(middle, unit)}${unit.name}`;
  return values.length < 2 ? text : `${text} (${shown(lower, unit)} to ${shown(upper, unit)})`;
}

interface Measured {
  readonly what: string;
  readonly values: readonly number[];
  readonly unit: Unit;
  /** One for each value, or one for all. */
  readonly references: readonly number[];
  /** What the reference is. */
  readonly by: string;
  /** A part of each value that the references lack, and that is left out of the ratio. */
  readonly less?: { readonly values: readonly number[]; readonly by: string };
  readonly limit?: number | undefined;
}

export function rowOf({ what, values, unit, references, by, less, limit }: Measured): Row {
  const part = less === undefined ? 0 : median(less.values);
  const ratios = values.map(
    (value, round) => (value - part) / (references[round] ?? references[0] ?? Number.NaN),
  );
  const texts = [{ values: references, by }, ...(less === undefined ? [] : [less])];
  return {
    what,
    value: shownSpread(values, unit),
    reference: texts.map((text) => `${shownSpread(text.values, unit)} (${text.by})`).join(" + "),
    ratio: spreadOf(ratios),
    ...(limit !== undefined && { limit }),
  };
}

/** What a measured program sees: little of what this one does. */
export const environmentOf = (
  own: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> => ({
  PATH: process.env["PATH"] ?? "",
  HOME: process.env["HOME"] ?? "/",
  ...own,
});

export interface Timing {
  readonly seconds: number;
  readonly peakMegabytes: number;
  readonly stdout: string;
}

/** Runs a program to its end; fails with its stderr where it does. */
export async function time(
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Timing> {
  const started = performance.now();
  const child = Bun.spawn([...argv], {
    env: environmentOf(environment),
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const memory = watchMemory(child.pid, child.exited);
  const [stdout, stderr, status] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ]);
  const seconds = (performance.now() - started) / 1000;
  if (status !== 0) throw new Error(`${argv.join(" ")} ended with ${status}:\n${stderr}`);
  return { seconds, peakMegabytes: await memory, stdout };
}

/** The peak as Linux keeps it; NaN elsewhere. Not the resource usage at the end: that counts this program's own memory, from before the exec. */
async function watchMemory(processId: number, exited: Promise<number>): Promise<number> {
  const end = { reached: false };
  exited.then(
    () => (end.reached = true),
    () => (end.reached = true),
  );
  let peak = Number.NaN;
  while (!end.reached) {
    const status = await Bun.file(`/proc/${processId}/status`)
      .text()
      .catch(() => "");
    const kibibytes = /^VmHWM:\s*(\d+)/m.exec(status)?.[1];
    if (kibibytes !== undefined) peak = (Number(kibibytes) * 1024) / 1e6;
    await Bun.sleep(20);
  }
  return peak;
}

/** Seconds of each command line in each round, run in turn `rounds` times, so that noise hits all alike. */
export async function interleaved(
  commands: readonly (readonly string[])[],
  rounds: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<readonly (readonly number[])[]> {
  const seconds = commands.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, argv] of commands.entries())
      seconds[index]?.push(await elapsed(argv, environment));
  }
  return seconds;
}

/** Seconds until its end, with nothing else going on in this program meanwhile; fails where it does. */
export async function elapsed(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<number> {
  const started = performance.now();
  const child = Bun.spawn([...argv], {
    env: environmentOf(environment),
    // A pipe, as scripts use: the null device counts as a terminal until it has been asked. What these programs print fits into it.
    stdio: ["ignore", "pipe", "ignore"],
  });
  const status = await child.exited;
  const seconds = (performance.now() - started) / 1000;
  if (status !== 0) throw new Error(`${argv.join(" ")} ended with ${status}`);
  return seconds;
}

/** How the bench runs programs and says what it measured. Machines are noisy: everything is a ratio against a reference of the same run. */

export interface Row {
  readonly what: string;
  /** With its unit. */
  readonly value: string;
  readonly reference: string;
  /** Value by reference. */
  readonly ratio: number;
  /** What the project has promised, where it has. */
  readonly limit?: number;
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((left, right) => left - right);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** What a measured program sees: little of what this one does. */
export const environmentOf = (own: Readonly<Record<string, string>>): Readonly<Record<string, string>> => ({
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

/** Median seconds of each command line, run in turn `rounds` times, so that noise hits all alike. */
export async function interleaved(
  commands: readonly (readonly string[])[],
  rounds: number,
  environment: Readonly<Record<string, string>> = {},
): Promise<readonly number[]> {
  const seconds = commands.map((): number[] => []);
  for (let round = 0; round < rounds; round += 1) {
    for (const [index, argv] of commands.entries()) seconds[index]?.push(await elapsed(argv, environment));
  }
  return seconds.map(median);
}

/** Seconds until its end, with nothing else going on in this program meanwhile; fails where it does. */
export async function elapsed(argv: readonly string[], environment: Readonly<Record<string, string>>): Promise<number> {
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

export const milliseconds = (seconds: number): string => `${(seconds * 1000).toFixed(1)} ms`;

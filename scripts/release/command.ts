/** Programs that a release runs. */

export interface CommandOptions {
  readonly cwd: string;
  readonly stdin?: string;
  /** Beside this program's own. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** What it prints on stdout, without the last line's end. Throws with its stderr where it fails. */
export async function output(
  argv: readonly string[],
  { cwd, stdin, environment }: CommandOptions,
): Promise<string> {
  const child = Bun.spawn([...argv], {
    cwd,
    env: { ...process.env, ...environment },
    stdin: stdin === undefined ? "ignore" : new Blob([stdin]),
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (status !== 0)
    throw new Error(`${argv.join(" ")} ended with ${status}:\n${stderr}${stdout}`.trimEnd());
  return stdout.trimEnd();
}

/** Runs shell lines as users type them. */

export interface ShellEnded {
  readonly status: number;
  /** Both streams together. */
  readonly output: string;
}

/**
 * Runs lines with `sh`, where `words` are `$0`, `$1` and so on. Gives what they print; throws with that where they
 * fail.
 */
export async function shell(lines: string, words: readonly string[], cwd: string): Promise<string> {
  const { status, output } = await tryShell(lines, words, cwd);
  if (status !== 0) throw new Error(`${lines}\nended with ${status}:\n${output}`);
  return output;
}

export async function tryShell(
  lines: string,
  words: readonly string[],
  cwd: string,
): Promise<ShellEnded> {
  const child = Bun.spawn(["sh", "-c", `exec 2>&1\n${lines}`, ...words], {
    cwd,
    stdout: "pipe",
  });
  const output = await new Response(child.stdout).text();
  return { status: await child.exited, output };
}

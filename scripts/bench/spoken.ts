/** Measures when a program prints its lines. */
import { environmentOf } from "./measure.ts";

export interface Line {
  /** Milliseconds since the start of the program. */
  readonly seconds: number;
  readonly text: string;
}

/** Runs a program to its end and returns all lines of its stderr. Throws if the program fails. */
export async function spoken(
  argv: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<readonly Line[]> {
  const started = performance.now();
  const child = Bun.spawn([...argv], {
    // Wide enough for each command in one line.
    env: environmentOf({ ...environment, COLUMNS: "100000" }),
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
  });
  const lines: Line[] = [];
  const rest = { text: "" };
  const decoder = new TextDecoder();
  for await (const chunk of child.stderr) {
    const seconds = (performance.now() - started) / 1000;
    const parts = `${rest.text}${decoder.decode(chunk, { stream: true })}`.split("\n");
    rest.text = parts.pop() ?? "";
    lines.push(...parts.map((text) => ({ seconds, text })));
  }
  if ((await child.exited) !== 0)
    throw new Error(`${argv.join(" ")} failed:\n${lines.map(({ text }) => text).join("\n")}`);
  return lines;
}

/** Returns when the last of `count` matching lines was printed. */
export function lastOf(lines: readonly Line[], pattern: RegExp, count: number): number {
  const found = lines.filter(({ text }) => pattern.test(text));
  if (found.length !== count)
    throw new Error(`${found.length} lines like ${pattern}, not ${count}`);
  return found.at(-1)?.seconds ?? Number.NaN;
}

/** Returns the first `count` matching lines. */
export function findLines(
  lines: readonly Line[],
  pattern: RegExp,
  count: number,
): readonly string[] {
  const found = lines.filter(({ text }) => pattern.test(text)).slice(0, count);
  if (found.length !== count)
    throw new Error(`${found.length} lines like ${pattern}, not ${count}`);
  return found.map(({ text }) => text);
}

/**
 * The lines of QEMU's stderr that say what is wrong, without its name before them, warnings, and the contents of registers; `undefined`: there are
 * none. At most `count` lines.
 */
export function qemuWords(stderr: string, count: number): string | undefined {
  const lines = stderr.split("\n").map((line) => line.replace(/^qemu[\w-]*: (?:(?:-accel \w+|error): )?/, "").trim());
  const said = lines
    .filter((line) => line !== "" && !isBesideThePoint(line))
    .map((line) => line.replace(/[.\s]+$/, ""));
  return said.length === 0 ? undefined : said.slice(0, count).join("; ");
}

const isBesideThePoint = (line: string): boolean =>
  /^warning: |^extra data\[|^terminating on signal |^[A-Z][A-Z0-9]+ *=|^Code=/.test(line);

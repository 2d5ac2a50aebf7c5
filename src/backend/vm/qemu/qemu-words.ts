/**
 * Returns the lines of QEMU's stderr that say what is wrong, at most `count` of them. Leaves out QEMU's name at the start of a line, warnings, and
 * register dumps. Returns `undefined` if no lines remain.
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

/**
 * Checks that the Python files of src can be parsed by Python 2.7, the oldest Python that nodes have (CentOS 7). The
 * parser is a package, because current systems no longer offer that Python.
 * Usage: bun run scripts/check-python.ts
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { Python2Parser } from "dt-python-parser";

const root = join(import.meta.dir, "..");

/** What the parser takes, but Python 2.7 doesn't. */
const laterSyntax = /\byield from\b|\bprint\(/;

/** Every fault of a text, as `line: fault`. */
export function pythonFaults(text: string): readonly string[] {
  const later = text
    .split("\n")
    .flatMap((line, index) => (laterSyntax.test(line) ? [`${index + 1}: ${line.trim()}`] : []));
  const faults = new Python2Parser().validate(text);
  return [...faults.map(({ startLine, message }) => `${startLine}: ${message}`), ...later];
}

if (import.meta.main) {
  for await (const path of new Bun.Glob("src/**/*.py").scan({ cwd: root })) {
    for (const fault of pythonFaults(await readFile(join(root, path), "utf8"))) {
      console.log(`${path}:${fault}`);
      process.exitCode = 1;
    }
  }
}

import { quote } from "./quote.ts";

/** Names in capitals, because shellcheck takes those for values from outside. */
const valueName = /^[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)*$/;

/**
 * Returns a script file as a node gets it: the values as assignments, then the file without its header. The header ends
 * at the first empty line. Whoever sends the text knows whether it may stand in an argument list: no secret may.
 */
export function shellText(file: string, values: Readonly<Record<string, string | number>> = {}): string {
  const assignments = Object.entries(values).map(([name, value]) => {
    if (!valueName.test(name)) throw new TypeError(`Not a name for a value of a script: ${name}`);
    return `${name}=${quote([String(value)])}\n`;
  });
  return assignments.join("") + withoutHeader(file);
}

/** Returns a file that runs on a node, such as a Python program, without its header. */
export function withoutHeader(file: string): string {
  const end = file.indexOf("\n\n");
  if (!file.startsWith("#") || end === -1) throw new TypeError("A file that runs elsewhere begins with a header.");
  return file.slice(end + 2);
}

import { ClusterError } from "../errors.ts";

/** Names in capitals, because shellcheck takes those for values from outside. */
const valueName = /^[A-Z][A-Z0-9]*(?:_[A-Za-z0-9]+)*$/;

/**
 * Returns a script file as a node gets it: the values as assignments, then the file without its header. The header ends
 * at the first empty line. Callers decide whether the text may stand in an argument list: no secret may.
 */
export function shellText(
  file: string,
  values: Readonly<Record<string, string | number>> = {},
): string {
  const assignments = Object.entries(values).map(([name, value]) => {
    if (!valueName.test(name)) throw new TypeError(`Not a name for a value of a script: ${name}`);
    return `${name}=${quote([String(value)])}\n`;
  });
  return assignments.join("") + withoutHeader(file);
}

export function withoutHeader(file: string): string {
  const end = file.indexOf("\n\n");
  if (!file.startsWith("#") || end === -1)
    throw new TypeError("A file that runs elsewhere begins with a header.");
  return file.slice(end + 2);
}

const plainWord = /^[\w@%+:,./-]+$/;
const reservedWord =
  /^(?:case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while)$/;

/**
 * Quotes words so that a POSIX shell reads back exactly these words. Everything that this program passes to a remote
 * shell goes through here. Throws `bad-usage` for a NUL character, which no shell can carry; the message doesn't show
 * the word, which may be a secret.
 */
export function quote(words: readonly string[]): string {
  return words.map(quoteWord).join(" ");
}

function quoteWord(word: string): string {
  if (word.includes("\0"))
    throw new ClusterError(
      "bad-usage",
      "A value contains a NUL character, which cannot be passed to a shell.",
    );
  return plainWord.test(word) && !reservedWord.test(word)
    ? word
    : `'${word.replaceAll("'", `'\\''`)}'`;
}

/** Returns why a shell would not accept the name in `export`, or `undefined`. */
export const variableNameProblem = (name: string): string | undefined =>
  /^[A-Za-z_]\w*$/.test(name) ? undefined : `"${name}" is not a name for an environment variable`;

/** Returns the name if a shell accepts it in `export`; otherwise throws `bad-usage`. */
export function checkedVariableName(name: string): string {
  const problem = variableNameProblem(name);
  if (problem === undefined) return name;
  throw new ClusterError("bad-usage", `${problem}.`);
}

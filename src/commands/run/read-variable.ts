import { messageOf } from "../../errors.ts";
import { BadValue, type Invocation, whileOptionsAreRead } from "../../cli/options/option.ts";

export interface Variable {
  readonly name: string;
  readonly contents: string;
}

/** Reads `KEY=VALUE`. Messages don't repeat the text, because its value may be a secret. */
export function readVariable(given: string): Variable {
  const equals = given.indexOf("=");
  const name = given.slice(0, Math.max(equals, 0));
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    throw new BadValue(
      "write <KEY>=<VALUE>; a key has only letters, digits and _, and does not begin with a digit",
    );
  }
  return { name, contents: given.slice(equals + 1) };
}

/**
 * Reads a file of `KEY=VALUE` lines. Everything after the first `=` is the value, including spaces.
 * Empty lines and lines that begin with `#` are skipped. All invalid lines are reported together.
 */
export async function readVariableFile(
  given: string,
  { cwd }: Pick<Invocation, "cwd">,
): Promise<readonly Variable[]> {
  const text = await readFileText(given, cwd);
  const problems: string[] = [];
  const variables = text.split(/\r?\n/).flatMap((line, index): readonly Variable[] => {
    if (line.trim() === "" || line.startsWith("#")) return [];
    try {
      return [readFileLine(line)];
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      problems.push(`${given}, line ${index + 1}: ${messageOf(error)}`);
      return [];
    }
  });
  if (problems.length > 0) throw new BadValue(problems.join("; "));
  return variables;
}

/** Refuses lines that shells and other programs would read differently. */
function readFileLine(line: string): Variable {
  if (line.includes("\0")) throw new BadValue("a value cannot contain a NUL byte");
  if (/^export\s/.test(line))
    throw new BadValue('leave out "export": a line is only <KEY>=<VALUE>');
  const variable = readVariable(line);
  const isQuoted = /^(["']).*\1$/.test(variable.contents);
  if (isQuoted)
    throw new BadValue("leave out the quotation marks around the value: they would be part of it");
  return variable;
}

/**
 * Whether a variable's name looks like that of a secret. Most variables on the command line are settings, because other
 * users of the machine can see them.
 */
export const isSecretName = (name: string): boolean =>
  /password|passwd|passphrase|secret|token|key|credential/i.test(name);

/**
 * Returns the values to mask. Words such as `true` and short values are settings; masking them
 * would make the output unreadable.
 */
export const secretsIn = (variables: readonly Variable[]): readonly string[] =>
  variables
    .map(({ contents }) => contents)
    .filter((contents) => contents.length >= 4 && !/^(true|false|null|none)$/i.test(contents));

const mostBytes = 1024 * 1024;

async function readFileText(given: string, cwd: string): Promise<string> {
  const [path, { readText, unreadableReason }] = await Promise.all([
    import("node:path"),
    import("../../system/files/read-text.ts"),
  ]);
  try {
    const text = await readText(path.resolve(cwd, given), mostBytes, whileOptionsAreRead());
    return text.replace(/^\uFEFF/, "");
  } catch (error) {
    throw new BadValue(`cannot read ${given}: ${unreadableReason(error)}`);
  }
}

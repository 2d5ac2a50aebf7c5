import { ClusterError } from "../errors.ts";
import { quote } from "./quote.ts";

/** What a person's command runs in. No value of it ever stands in an argument list that is made here, on either side. */
export interface SessionScript {
  /** The first that fits is used. */
  readonly settings: readonly SessionSettings[];
  /** One word is a shell line; several are run exactly as they are. */
  readonly words: readonly string[];
}

export interface SessionSettings {
  /** Fits only where this absolute path exists on the node: asked there, which saves a round trip before the session. Undefined: fits always. */
  readonly whenExists: string | undefined;
  /** A shell file on the node that is read first, where it exists. */
  readonly environmentFile: string | undefined;
  /** Set after that file was read, so they win over it. */
  readonly variables: Readonly<Record<string, string>>;
  /** Undefined: the home directory. One that doesn't exist ends the session with 255. */
  readonly workingDirectory: string | undefined;
}

/**
 * The shell text of a session. It stays the parent of the command (no `exec`), or a command that dies by a signal would end the whole session by
 * it, which ssh shows as 255 and not as 128 + n.
 */
export function renderSessionScript({ settings, words }: SessionScript): string {
  const [line, ...more] = words;
  return [
    ...settings.map((one, index) => `${index === 0 ? "if" : "elif"} ${condition(one)}; then\n${renderSettings(one)}`),
    ...(settings.length === 0 ? [] : ["fi"]),
    more.length === 0 ? `eval ${quote([line ?? ""])}` : quote(words),
    "exit $?",
    "",
  ].join("\n");
}

const condition = ({ whenExists }: SessionSettings): string =>
  whenExists === undefined ? ":" : `[ -e ${quote([whenExists])} ]`;

function renderSettings({ environmentFile, variables, workingDirectory }: SessionSettings): string {
  return [
    ...(environmentFile === undefined ? [] : [readFile(quote([environmentFile]))]),
    ...Object.entries(variables).map(([name, value]) => `export ${checkedName(name)}=${quote([value])}`),
    workingDirectory === undefined ? "cd" : enter(workingDirectory),
  ].join("\n");
}

const readFile = (path: string): string => `if [ -r ${path} ]; then . ${path}; fi`;

function enter(folder: string): string {
  const complaint = quote([`The folder ${folder} is not on this node`]);
  return `cd -- ${quote([folder])} 2>/dev/null || { echo ${complaint} >&2; exit 255; }`;
}

function checkedName(name: string): string {
  if (/^[A-Za-z_]\w*$/.test(name)) return name;
  throw new ClusterError("bad-usage", `"${name}" is no name of an environment variable.`);
}

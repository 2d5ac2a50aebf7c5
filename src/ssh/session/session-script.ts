import { quote } from "../quote.ts";
import { checkedVariableName } from "../variable-name.ts";

/** What a person's command runs in. No value of it ever stands in an argument list that is made here, on either side. */
export interface SessionScript {
  /** The first that fits is used. */
  readonly settings: readonly SessionSettings[];
  /** One word is a shell line; several are run exactly as they are. */
  readonly words: readonly string[];
  /** Stands behind the message that a working directory is not on the node: what to do about it. */
  readonly missingFolderHint: string;
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
export function renderSessionScript({ settings, words, missingFolderHint }: SessionScript): string {
  const [line, ...more] = words;
  const render = (one: SessionSettings): string => renderSettings(one, missingFolderHint);
  return [
    ...settings.map((one, index) => `${index === 0 ? "if" : "elif"} ${condition(one)}; then\n${render(one)}`),
    ...(settings.length === 0 ? [] : ["fi"]),
    more.length === 0 ? `eval ${quote([line ?? ""])}` : quote(words),
    "exit $?",
    "",
  ].join("\n");
}

const condition = ({ whenExists }: SessionSettings): string =>
  whenExists === undefined ? ":" : `[ -e ${quote([whenExists])} ]`;

function renderSettings(
  { environmentFile, variables, workingDirectory }: SessionSettings,
  missingFolderHint: string,
): string {
  return [
    ...(environmentFile === undefined ? [] : [readFile(quote([environmentFile]))]),
    ...Object.entries(variables).map(([name, value]) => `export ${checkedVariableName(name)}=${quote([value])}`),
    workingDirectory === undefined ? "cd" : enter(workingDirectory, missingFolderHint),
  ].join("\n");
}

const readFile = (path: string): string => `if [ -r ${path} ]; then . ${path}; fi`;

function enter(folder: string, hint: string): string {
  const complaint = quote([`The folder ${folder} is not on this node. ${hint}`]);
  return `cd -- ${quote([folder])} 2>/dev/null || { echo ${complaint} >&2; exit 255; }`;
}

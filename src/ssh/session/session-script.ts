import { checkedVariableName, quote } from "../shell-text.ts";

/** The environment of a user's command. No value of it ever appears in an argument list made here, on either side. */
export interface SessionScript {
  /** The first settings that fit are used. */
  readonly settings: readonly SessionSettings[];
  /** A single word is a shell line; several words are run exactly as they are. */
  readonly words: readonly string[];
  /** Says what to do if a working directory is missing on the node; printed after that message. */
  readonly missingFolderHint: string;
}

export interface SessionSettings {
  /**
   * These settings fit only if this absolute path exists on the node. The check runs there, which saves a round trip
   * before the session. Undefined: they always fit.
   */
  readonly whenExists: string | undefined;
  /** A shell file on the node to source first, if it exists. */
  readonly environmentFile: string | undefined;
  /** Set after that file is read, so they override it. */
  readonly variables: Readonly<Record<string, string>>;
  /** Undefined: the home directory. A directory that doesn't exist ends the session with 255. */
  readonly workingDirectory: string | undefined;
}

/**
 * Returns the shell text of a session. The shell stays the parent of the command (no `exec`). Otherwise a command that
 * dies by a signal would end the whole session with it, which ssh reports as 255 instead of 128 + n.
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
  const complaint = quote([`The folder ${folder} does not exist on this node. ${hint}`]);
  return `cd -- ${quote([folder])} 2>/dev/null || { echo ${complaint} >&2; exit 255; }`;
}

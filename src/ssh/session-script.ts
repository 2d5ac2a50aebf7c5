import { ClusterError } from "../errors.ts";
import { quote } from "./quote.ts";

/** What a person's command runs in. None of it ever stands in an argument list, here or on the node. */
export interface SessionScript {
  /** A shell file on the node that is read first, where it exists. */
  readonly environmentFile: string | undefined;
  /** Set after that file was read, so they win over it. */
  readonly variables: Readonly<Record<string, string>>;
  /** Absent: the home directory. One that doesn't exist ends the session with 255. */
  readonly workingDirectory: string | undefined;
  /** One word is a shell line; several are run exactly as they are. */
  readonly words: readonly string[];
}

/**
 * A shell script that takes itself and its folder off the disk first. It stays the parent of the command (no `exec`), or a command that dies by a
 * signal would end the whole session by it, which ssh shows as 255 and not as 128 + n.
 */
export function renderSessionScript(script: SessionScript): string {
  const { environmentFile, variables, workingDirectory, words } = script;
  const [line, ...more] = words;
  return [
    'rm -rf -- "${0%/*}"',
    ...(environmentFile === undefined
      ? []
      : [`if [ -r ${quote([environmentFile])} ]; then . ${quote([environmentFile])}; fi`]),
    ...Object.entries(variables).map(([name, value]) => `export ${checkedName(name)}=${quote([value])}`),
    workingDirectory === undefined ? "cd" : enter(workingDirectory),
    more.length === 0 ? `eval ${quote([line ?? ""])}` : quote(words),
    "",
  ].join("\n");
}

function enter(folder: string): string {
  const complaint = quote([`The folder ${folder} is not on this node`]);
  return `cd -- ${quote([folder])} 2>/dev/null || { echo ${complaint} >&2; exit 255; }`;
}

function checkedName(name: string): string {
  if (/^[A-Za-z_]\w*$/.test(name)) return name;
  throw new ClusterError("bad-usage", `"${name}" is no name of an environment variable`);
}

import type { ProcessLike } from "../command.ts";

/** The width of text that doesn't go to a terminal. */
export const pageWidth = 80;

/**
 * Returns the name of the prepared help that these words request: a command's name, or an empty
 * name for the program. Undefined if they request anything else, or if stdout may be narrower than
 * prepared help.
 */
export function preparedHelpName(
  [first = "--help", ...rest]: readonly string[],
  host: Pick<ProcessLike, "env" | "binding">,
): string | undefined {
  if (isHelp(first)) return Number(host.env["COLUMNS"]) < pageWidth ? undefined : "";
  return rest.length === 1 && rest.every(isHelp) && isOffTerminal(host) ? first : undefined;
}

const isHelp = (word: string): boolean => word === "--help" || word === "-h";

/**
 * Whether stdout is certainly not a terminal; on a terminal, a command's help would be wrapped to
 * its width. Asks the system as node:tty does, without loading node:tty, which takes as long as
 * everything else together in Bun 1.4.4. If that fails, the help is rendered as usual.
 */
function isOffTerminal(host: Pick<ProcessLike, "binding">): boolean {
  try {
    return host.binding?.("tty_wrap").isTTY?.(1) === false;
  } catch {
    return false;
  }
}

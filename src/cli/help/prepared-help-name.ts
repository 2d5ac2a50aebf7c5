import type { ProcessLike } from "../command.ts";

/** The width of text that doesn't go to a terminal: that of a page. */
export const pageWidth = 80;

/**
 * Returns the name of the prepared help that these words ask for: a command's name, or an empty name for the program. Absent if they ask for anything
 * else, or if this output may be narrower than prepared help.
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
 * Whether stdout certainly is no terminal, whose width a command's help would fit. Asks the system as node:tty does, without loading node:tty, which
 * takes as long as all the rest together in Bun 1.4.4. Where that way is closed, the usual one is taken.
 */
function isOffTerminal(host: Pick<ProcessLike, "binding">): boolean {
  try {
    return host.binding?.("tty_wrap").isTTY?.(1) === false;
  } catch {
    return false;
  }
}

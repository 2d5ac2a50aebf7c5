import { readBytes } from "../../system/files/read-text.ts";
import { replacement, utf8Text } from "../../system/utf8.ts";

const mostBytes = 8 * 1024 * 1024;

/**
 * Returns the problem if some of the program's arguments have reached it with other bytes than were typed. Where the system doesn't show the bytes, an
 * argument with the replacement's character counts as changed.
 */
export async function changedArguments(
  argv: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  if (!argv.some((word) => word.includes(replacement))) return undefined;
  const bytes = await readBytes("/proc/self/cmdline", mostBytes, signal).catch(() => undefined);
  if (bytes !== undefined && utf8Text(bytes) !== undefined) return undefined;
  return "the arguments: some bytes are not UTF-8, and would change; pass such bytes over stdin or in a file";
}

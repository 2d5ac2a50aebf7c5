import type { NamedText } from "../../backend/contract.ts";
import { maskedPrintable, outsideLine } from "../../system/printable.ts";
import { writePrivateFileIn } from "../../system/files/private-file.ts";
import type { Progress } from "../../system/runtime.ts";

/** A node's reference and the kind of text. No file that the program keeps in a cluster's folder matches it. */
const logName = /^[a-z]+(_[a-z]+)?_\d+(\.[a-z-]+)+$/;

/**
 * Writes texts from nodes into a folder as files that only this user can read, with hidden values masked and no terminal control characters. This is
 * the only way such texts reach the disk: a text whose name isn't a log's is skipped. Returns the names of the files.
 */
export async function saveTexts(
  folder: string,
  texts: readonly NamedText[],
  progress: Progress,
): Promise<readonly string[]> {
  const saved: string[] = [];
  for (const { name, text } of texts) {
    if (logName.test(name)) {
      await writePrivateFileIn(
        folder,
        name,
        maskedPrintable(text, (given) => progress.mask(given)),
      );
      saved.push(name);
    } else progress.warn(`a log was not saved: "${outsideLine(name, 100)}" is not a valid name for a log`);
  }
  return saved;
}

import type { BigIntStats } from "node:fs";
import { lstat, stat } from "node:fs/promises";
import * as read from "../../../model/reader.ts";
import { writePrivateFile } from "../../../system/files/private-file.ts";
import { readOwnJson } from "../../../system/files/read-text.ts";
import { ownUserId } from "../../../system/own-user.ts";

export const parseSum = read.object({
  algorithm: read.oneOf("sha256", "sha512"),
  hex: read.string,
});

export type Sum = read.ValueOf<typeof parseSum>;

/** What was found when a stored image was last read as a whole; see `identityOf`. */
const parseVerification = read.object({
  schemaVersion: read.oneOf(1),
  sum: parseSum,
  identity: read.string,
});

type ImageVerification = Omit<read.ValueOf<typeof parseVerification>, "schemaVersion">;

const recordPath = (path: string): string => `${path}.verified`;

/**
 * Changes whenever somebody writes to the file or replaces it: nobody but root can set the time of
 * a file's last change. The number of its disk doesn't count: it may be another one after each
 * start of this computer, as on btrfs and LVM.
 */
export const identityOf = async (path: string): Promise<string> =>
  identityIn(await stat(path, { bigint: true }));

export const identityIn = ({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [ino, size, mtimeNs, ctimeNs].join(":");

export async function recordVerification(
  path: string,
  verification: ImageVerification,
): Promise<void> {
  await writePrivateFile(
    recordPath(path),
    `${JSON.stringify({ schemaVersion: 1, ...verification })}\n`,
  );
}

/**
 * Returns `undefined` if there is no record, or if others may have written it: the store may have
 * been open to them before.
 */
export async function readVerification(path: string): Promise<ImageVerification | undefined> {
  const information = await lstat(recordPath(path)).catch(() => undefined);
  if (information === undefined || (information.mode & 0o022) !== 0) return undefined;
  return information.uid === ownUserId()
    ? readOwnJson(recordPath(path), parseVerification)
    : undefined;
}

/**
 * Finds the file's sum in a publisher's list, in the format of `sha256sum` and `sha512sum` (`<sum>
 * [*]<name>`) or of BSD's tools (`SHA256 (<name>) = <sum>`).
 */
export function findSum(list: string, fileName: string): Sum | undefined {
  for (const line of list.split("\n")) {
    const [, plainHex, plainName] = /^([0-9a-f]+)\s+\*?(\S+)\s*$/i.exec(line) ?? [];
    const [, bsdName, bsdHex] = /^SHA(?:256|512) \((\S+)\) = ([0-9a-f]+)\s*$/i.exec(line) ?? [];
    const hex = (plainHex ?? bsdHex ?? "").toLowerCase();
    if ((plainName ?? bsdName)?.replace(/^\.\//, "") !== fileName) continue;
    if (hex.length === 64) return { algorithm: "sha256", hex };
    if (hex.length === 128) return { algorithm: "sha512", hex };
  }
  return undefined;
}

import {
  type Stats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  writeFileSync,
} from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { type ClusterEvent, readEvent } from "../model/event.ts";
import { parseJson } from "../system/files/read-text.ts";

/** At this size, a cluster's file takes no more events. */
const mostBytes = 20_000_000;
/** Far above any event, also of a thousand nodes. Longer lines are not ours. */
const longestLine = 100_000;

export const eventsFile = (directory: string): string => join(directory, "events.jsonl");

/**
 * Appends an event to the cluster's file, which only this user can read. Its texts must be masked.
 * It is written at once, so that it survives a crash. An event that can't be written is lost: no
 * command fails because of it.
 */
export function appendEvent(directory: string, event: ClusterEvent): void {
  const flags =
    constants.O_RDWR |
    constants.O_APPEND |
    constants.O_CREAT |
    constants.O_NOFOLLOW |
    constants.O_NONBLOCK;
  try {
    const descriptor = openSync(eventsFile(directory), flags, 0o600);
    try {
      const information = fstatSync(descriptor);
      const line = `${isTorn(descriptor, information) ? "\n" : ""}${JSON.stringify(event)}\n`;
      if (information.isFile() && information.size + line.length <= mostBytes)
        writeFileSync(descriptor, line);
    } finally {
      closeSync(descriptor);
    }
  } catch {
    // A full disk, a folder that is read-only, or a cluster that was created on another computer.
  }
}

/** Whether the last line was not written to its end, because the disk was full or the program was killed. */
function isTorn(descriptor: number, information: Stats): boolean {
  if (!information.isFile() || information.size === 0) return false;
  const last = Buffer.alloc(1);
  return readSync(descriptor, last, 0, 1, information.size - 1) === 1 && last.toString() !== "\n";
}

/**
 * Returns the events in the order in which they were written. Skips lines that are no events; a
 * file that can't be read has none.
 */
export async function readEvents(directory: string): Promise<readonly ClusterEvent[]> {
  try {
    await using file = await open(
      eventsFile(directory),
      constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW,
    );
    const information = await file.stat();
    if (!information.isFile()) return [];
    const length = Math.min(information.size, mostBytes);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, 0);
    return eventsIn(buffer.toString("utf8", 0, bytesRead));
  } catch {
    return [];
  }
}

const eventsIn = (text: string): readonly ClusterEvent[] =>
  text.split("\n").flatMap((line) => {
    const event = line.length > longestLine ? undefined : readEvent(parseJson(line));
    return event ?? [];
  });

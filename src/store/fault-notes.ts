import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { parseMoment } from "../model/parse-values.ts";
import * as read from "../model/reader.ts";
import { writePrivateFile } from "../system/files/private-file.ts";
import { readOwnJson } from "../system/files/read-text.ts";

const readNote = read.object({
  schemaVersion: read.oneOf(1),
  id: read.matching(/^[0-9a-f]{8}$/),
  description: read.matching(/^[^\p{Cc}]{1,1000}$/u),
  endsAt: parseMoment,
});

/** A fault that was begun on this computer. A restart of a node heals the node's part before `endsAt`. */
export type FaultNote = Omit<read.ValueOf<typeof readNote>, "schemaVersion">;

const fileOf = (directory: string, id: string): string => join(directory, `fault-${id}.json`);

/** Stores a note in the cluster's folder, if this machine may write to it. */
export async function keepFaultNote(directory: string, note: FaultNote): Promise<void> {
  await writePrivateFile(
    fileOf(directory, note.id),
    `${JSON.stringify({ schemaVersion: 1, ...note })}\n`,
  ).catch(() => {});
}

export async function removeFaultNote(directory: string, id: string): Promise<void> {
  await rm(fileOf(directory, id), { force: true }).catch(() => {});
}

/** The faults that are not over, the next to end first. Removes the notes of the others. */
export async function findFaultNotes(
  directory: string,
  nowMs: number,
): Promise<readonly FaultNote[]> {
  const names = (await readdir(directory).catch(() => [])).filter((name) =>
    /^fault-[0-9a-f]{8}\.json$/.test(name),
  );
  const notes = await Promise.all(
    names.map(async (name) => readOwnJson(join(directory, name), readNote)),
  );
  const found = notes.flatMap((note) => {
    if (note === undefined) return [];
    const { schemaVersion: _, ...own } = note;
    return [own];
  });
  for (const { id, endsAt } of found)
    if (endsAt.getTime() <= nowMs) await removeFaultNote(directory, id);
  return found
    .filter(({ endsAt }) => endsAt.getTime() > nowMs)
    .toSorted((a, b) => a.endsAt.getTime() - b.endsAt.getTime());
}

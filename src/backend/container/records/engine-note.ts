import { join } from "node:path";
import * as read from "../../../model/reader.ts";
import { presentCreations } from "../../../store/creation-folder.ts";
import { writePrivateFile } from "../../../system/files/private-file.ts";
import { readOwnJson } from "../../../system/files/read-text.ts";
import type { EngineKind } from "../engine/engine-kind.ts";

/** Which engine a cluster was made with. Only this computer's disk can say so where that engine isn't asked. */
interface EngineNote {
  /** See `engineAddress`. */
  readonly address: string;
  /** The engine doesn't see containers of another one that it had before. */
  readonly storageDriver: string;
}

const notePath = (directory: string): string => join(directory, "engine.json");

export async function writeEngineNote(directory: string, note: EngineNote): Promise<void> {
  const text = `${JSON.stringify({ schemaVersion: 1, ...note }, undefined, 2)}\n`;
  // Without it, an error only says less.
  await writePrivateFile(notePath(directory), text).catch(() => {});
}

export const readEngineNote = async (directory: string): Promise<EngineNote | undefined> =>
  readOwnJson(
    notePath(directory),
    read.object({
      schemaVersion: read.oneOf(1),
      address: read.string,
      storageDriver: read.string,
    }),
  );

interface Sought {
  readonly root: string;
  readonly clusterId: string;
  /** How the engine is addressed now, in which there is no such cluster. */
  readonly address: string;
}

/** Says where the clusters of this id were that this computer has made and not removed. */
export async function whereMade(
  { title }: Pick<EngineKind, "title">,
  { root, clusterId, address }: Sought,
): Promise<readonly string[]> {
  return Promise.all(
    (await presentCreations(root, clusterId)).map(async (directory) => {
      const note = await readEngineNote(directory);
      if (note === undefined || note.address === address)
        return `This computer made one that ${title} no longer has: its network and containers were removed, or another ${title} answers here now.`;
      const made = `This computer made one with ${title} at `;
      if (note.address !== "") return `${made}${note.address}: set that again to use it.`;
      return `${made}its usual place, without ${address}: unset that to use it.`;
    }),
  );
}

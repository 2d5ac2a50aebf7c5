import { createReadStream } from "node:fs";
import { ClusterError } from "../errors.ts";
import { errorCode } from "../system/error-code.ts";
import type { TarFile } from "../system/tar.ts";
import { tarStream } from "../system/tar.ts";
import type { SyncFile, SyncPlace, SyncPlan } from "./checkout-plan.ts";

/**
 * The archive that the unpacking script reads from its stdin: the files below `tests/` and `library/`, the lists of those that stay below
 * `unchanged/`, and at last an empty file `complete`, without which the script takes nothing: tar itself does not notice an archive that
 * breaks off between two files. Each call reads the files anew, so that each master has a stream of its own.
 */
export const checkoutArchive = (plan: SyncPlan): AsyncGenerator<Uint8Array, void, undefined> =>
  tarStream([...plan.files.map(member), ...unchangedLists(plan), textMember("complete", "")]);

const member = (file: SyncFile): TarFile => ({
  name: `${file.place}/${file.path}`,
  mode: file.mode,
  modifiedMs: file.modifiedMs,
  sizeBytes: file.sizeBytes,
  contents: () => contents(file.source),
});

async function* contents(source: string): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const chunk of createReadStream(source)) yield chunk as Uint8Array;
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    throw new ClusterError("transfer-failed", `${source} can no longer be read (${errorCode(error)}).`);
  }
}

/** One list per place and mode, of paths that each end with a NUL. */
function unchangedLists({ unchanged }: SyncPlan): readonly TarFile[] {
  const places: readonly SyncPlace[] = ["tests", "library"];
  return places.flatMap((place) =>
    ([0o644, 0o755] as const).flatMap((mode) => {
      const paths = unchanged.filter((file) => file.place === place && file.mode === mode).map((file) => file.path);
      return paths.length === 0
        ? []
        : [textMember(unchangedList(place, mode), paths.map((path) => `${path}\0`).join(""))];
    }),
  );
}

const unchangedList = (place: SyncPlace, mode: SyncFile["mode"]): string => `unchanged/${place}.${mode.toString(8)}`;

function textMember(name: string, text: string): TarFile {
  const bytes = new TextEncoder().encode(text);
  return {
    name,
    mode: 0o600,
    modifiedMs: 0,
    sizeBytes: bytes.length,
    contents: async function* () {
      if (bytes.length > 0) yield bytes;
    },
  };
}

import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import { errorCode } from "../../system/error-code.ts";
import { type TarFile, tarStream } from "../../system/files/tar.ts";
import { isRemovedFirst, type SyncFile, type SyncPlan } from "./checkout-plan.ts";

/**
 * The archive that the unpacking script reads from its stdin. It contains the files below `tests/` and `library/`; the list `unchanged` of files to
 * restore after the removal; and finally an empty file `complete`, without which the script rejects the archive, because tar doesn't notice an
 * archive that breaks off between two files. Each call reads the files again, so that each master has a stream of its own.
 */
export const checkoutArchive = (plan: SyncPlan): AsyncGenerator<Uint8Array, void, undefined> =>
  gather(tarStream([...plan.files.map(member), ...unchangedList(plan), textMember("complete", "")]), leastChunkBytes);

const leastChunkBytes = 128 * 1024;
/** Smaller files are read at once. */
const streamedFromBytes = 1_000_000;

const member = (file: SyncFile): TarFile => ({
  name: `${file.place}/${file.path}`,
  mode: file.mode,
  modifiedMs: file.modifiedMs,
  sizeBytes: file.sizeBytes,
  contents: () => contents(file),
});

async function* contents({ source, sizeBytes }: SyncFile): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    if (sizeBytes < streamedFromBytes) yield await readFile(source);
    else for await (const chunk of createReadStream(source)) yield chunk as Uint8Array;
  } catch (error) {
    if (errorCode(error) === undefined) throw error;
    throw new ClusterError("transfer-failed", `Cannot read ${source} any longer (${errorCode(error)}).`, {
      hint: "Sync again while no other program changes the checkout.",
    });
  }
}

/** Lists the unchanged files that the preceding removal deletes: paths that each end with a NUL. All of them are tests. */
function unchangedList(plan: SyncPlan): readonly TarFile[] {
  const paths = plan.unchanged.filter((file) => file.place === "tests" && isRemovedFirst(plan, file.path));
  return paths.length === 0 ? [] : [textMember("unchanged", paths.map(({ path }) => `${path}\0`).join(""))];
}

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

/** The same bytes in chunks of at least `leastBytes`, except the last one. Sending thousands of small chunks is slow. */
async function* gather(
  source: AsyncIterable<Uint8Array>,
  leastBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const pending: Uint8Array[] = [];
  const size = { bytes: 0 };
  for await (const chunk of source) {
    pending.push(chunk);
    size.bytes += chunk.length;
    if (size.bytes < leastBytes) continue;
    yield Buffer.concat(pending.splice(0));
    size.bytes = 0;
  }
  if (pending.length > 0) yield Buffer.concat(pending);
}

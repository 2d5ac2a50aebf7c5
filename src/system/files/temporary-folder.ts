import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, isAbsolute, join } from "node:path";
import { ClusterError } from "../../errors.ts";
import { errorCode } from "../error-code.ts";

/** A folder of this user alone. Disposing of it deletes it with all its contents. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
}

const prefix = "cluster-e2e-";

/** Whether the name of a path is that of a temporary folder. */
export const isTemporaryFolder = (path: string): boolean =>
  isAbsolute(path) && new RegExp(`^${prefix}[A-Za-z0-9]{6}$`).test(basename(path));

/** Creates a temporary folder inside `parent`, which must exist. */
export async function temporaryFolder(parent: string): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(parent, prefix));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

/** Creates one in the system's temporary folder. Throws `machine-not-set-up` if that is impossible. */
export async function systemTemporaryFolder(): Promise<TemporaryFolder> {
  const parent = tmpdir();
  try {
    return await temporaryFolder(parent);
  } catch (error) {
    const reason = errorCode(error) ?? String(error);
    throw new ClusterError("machine-not-set-up", `Cannot create a temporary folder in ${parent}: ${reason}.`, {
      hint: "Set TMPDIR to an existing folder that this user may write to.",
      facts: { folder: parent },
      cause: error,
    });
  }
}

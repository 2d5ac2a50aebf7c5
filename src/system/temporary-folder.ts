import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";

/** A folder of this user alone that is gone, with all that is in it, when it is disposed of. */
export interface TemporaryFolder extends AsyncDisposable {
  readonly path: string;
}

/** Makes one inside `parent`, which must exist. */
export async function temporaryFolder(parent: string): Promise<TemporaryFolder> {
  const path = await mkdtemp(join(parent, "cluster-e2e-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

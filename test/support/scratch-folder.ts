import { tmpdir } from "node:os";
import { temporaryFolder } from "../../src/system/files/temporary-folder.ts";
import type { TemporaryFolder } from "../../src/system/files/temporary-folder.ts";

/** A folder for one test, which is removed after it. */
export const scratchFolder = (): Promise<TemporaryFolder> => temporaryFolder(tmpdir());

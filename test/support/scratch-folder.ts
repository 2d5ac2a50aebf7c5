import { tmpdir } from "node:os";
import { temporaryFolder } from "../../src/system/files/temporary-folder.ts";
import type { TemporaryFolder } from "../../src/system/files/temporary-folder.ts";

/** A folder for one test, gone with the test. */
export const scratchFolder = (): Promise<TemporaryFolder> => temporaryFolder(tmpdir());

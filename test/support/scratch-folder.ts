import { tmpdir } from "node:os";
import { type TemporaryFolder, temporaryFolder } from "../../src/system/files/private-file.ts";

/** A folder for one test, which is removed after it. */
export const scratchFolder = (): Promise<TemporaryFolder> => temporaryFolder(tmpdir());

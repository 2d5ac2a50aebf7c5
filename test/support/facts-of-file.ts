import { realpath, stat } from "node:fs/promises";
import { type FileFacts, factsOf } from "../../src/system/files/listed-file.ts";

/** The facts that a listing keeps about a file. */
export async function factsOfFile(path: string): Promise<FileFacts> {
  const source = await realpath(path);
  return factsOf(source, await stat(source));
}

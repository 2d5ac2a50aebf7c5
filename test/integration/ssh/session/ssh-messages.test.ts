/** ssh's messages on this program's own stderr. */

import { join } from "node:path";
import { expect, test } from "bun:test";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const source = join(import.meta.dir, "../../../../src/ssh/session/session-messages.ts");
const program = `
  const { createSshMessages } = await import(process.argv.at(-2));
  const messages = createSshMessages(process.argv.at(-1), "inherit");
  await Bun.write(process.argv.at(-1), "Permission denied.\\n");
  await messages.release(new AbortController().signal);
`;

test("are printed on stderr alone", async () => {
  await using folder = await scratchFolder();
  const argv = [process.execPath, "-e", program, source, join(folder.path, "log")];
  const { stdout, stderr } = Bun.spawnSync(argv, { stdio: ["ignore", "pipe", "pipe"] });
  expect([stdout.toString(), stderr.toString()]).toEqual(["", "ssh: Permission denied.\n"]);
});

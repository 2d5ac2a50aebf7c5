/**
 * Writes the licenses of everything that is part of the executables to src/commands/third-party-notices.txt, which
 * `--licenses` prints.
 * Usage: bun run scripts/notices.ts [--check]     --check: writes nothing; exit code 1 if the file is stale
 */
import { join } from "node:path";
import { bundledFiles } from "./build.ts";
import { thirdPartyNotices } from "./release/notices.ts";

const root = join(import.meta.dir, "..");
const file = join(root, "src", "commands", "third-party-notices.txt");

const text = await thirdPartyNotices(root, await bundledFiles());
if (!process.argv.includes("--check")) await Bun.write(file, text);
else if ((await Bun.file(file).text()) !== text) {
  console.error("src/commands/third-party-notices.txt is stale: bun run scripts/notices.ts");
  process.exitCode = 1;
}

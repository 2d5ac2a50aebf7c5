/** Writes a megabyte to stdout and to stderr, and uses the clock and files meanwhile. Prints to the file $REPORT what went on. */
import { appendFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { openOutput } from "../../../../src/system/processes/output.ts";

const report = (line: string): void => appendFileSync(process.env["REPORT"] ?? "", `${line}\n`);
const [stdout, stderr] = await Promise.all([openOutput(1), openOutput(2)]);
const written = Promise.allSettled([
  stdout.write("o".repeat(2 ** 20)),
  stderr.write("e".repeat(2 ** 20)),
]);
await Bun.sleep(50);
await Promise.all(Array.from({ length: 20 }, async () => readFile(import.meta.path)));
report("files were read");
for (const end of await written)
  report(end.status === "fulfilled" ? "written" : (end.reason as { code: string }).code);

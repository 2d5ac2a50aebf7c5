import { expect, test } from "bun:test";
import { join } from "node:path";
import { disableCoreDumps } from "../../../../src/system/processes/core-dumps.ts";

const program = join(import.meta.dir, "core-dumps-program.ts");

test.skipIf(process.platform !== "linux").each([
  ["unlimited", "1"],
  ["0", "0"],
])("with a limit of %s, at most %s byte of a crash is written to disk", (limit, expected) => {
  const shell = `ulimit -S -c 0 && ulimit -H -c ${limit} && exec "$0" "$1"`;
  const { stdout } = Bun.spawnSync(["sh", "-c", shell, process.execPath, program]);
  const lines = stdout.toString().split("\n");
  expect(lines[0]).toBe("true");
  expect(lines.find((line) => line.startsWith("Max core file size"))?.split(/ {2,}/)[1]).toBe(
    expected,
  );
});

test("works in this process too", async () => {
  expect(await disableCoreDumps()).toBe(true);
});

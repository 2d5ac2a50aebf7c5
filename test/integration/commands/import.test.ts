/** `import` from stdin. */
import { expect, test } from "bun:test";
import { join } from "node:path";

const program = join(import.meta.dir, "../../../src/bin/cluster-cloud.ts");

test.each([
  ["echo 'not an export' |", "stdin was not written by cluster-cloud export"],
  ["</ ", "Cannot read stdin: it is a folder"],
])("what is wrong with stdin is said of stdin: %s", async (stdin, message) => {
  const line = `${stdin} ${process.execPath} ${program} import -`;
  const child = Bun.spawn(["sh", "-c", line], {
    env: { PATH: process.env["PATH"] },
    stderr: "pipe",
  });
  const stderr = await child.stderr.text();
  expect(stderr).toContain(message);
  expect(stderr).toEndWith("\n[bad-usage]\n");
});

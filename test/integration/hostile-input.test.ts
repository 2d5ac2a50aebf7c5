import { expect, test } from "bun:test";
import { join } from "node:path";
import { parserNames } from "../support/hostile-parsers.ts";

const program = join(import.meta.dir, "..", "support", "hostile-parsers.ts");

// A parser whose time grows faster than its text runs into the runner's own limit.
test.each([...parserNames])("10 MB that cost most: %s", async (name) => {
  await using child = Bun.spawn([process.execPath, "run", program, name], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const [said, failure] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect({ said, failure }).toEqual({ said: "ended\n", failure: "" });
});

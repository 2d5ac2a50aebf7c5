/** How far a clock is ahead: the node's deadline reads it while it changes. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import clockFile from "../../../../src/platform/faults/clock.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("what is ahead is replaced in one step, so that the deadline never reads nothing", async () => {
  await using scratch = await scratchFolder();
  const offset = join(scratch.path, "offset");
  await writeFile(offset, "30\n");
  await writeFile(join(scratch.path, "clock.base"), "1700000000\n");
  await writeFile(join(scratch.path, "0123abcd.offset"), "60\n");
  const script = `
${shellText(clockFile, { ID: "0123abcd", FOLDER: scratch.path, OFFSET: 60, DEADLINE_OFFSET: offset })}
date() { :; }
exec 3<"$DEADLINE_OFFSET"
set_clock && cat <&3 && cat "$DEADLINE_OFFSET"`;
  expect(await new Response(Bun.spawn(["sh", "-c", script]).stdout).text()).toBe("30\n60\n");
});

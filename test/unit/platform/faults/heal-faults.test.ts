/** What heals several faults of one node, of which one cannot be healed. */
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { completeScript } from "../../../../src/platform/install/phase.ts";
import healFile from "../../../../src/platform/faults/heal-faults.sh" with { type: "text" };
import { shellText } from "../../../../src/ssh/shell-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("the other faults are healed", async () => {
  await using scratch = await scratchFolder();
  const ids = ["a0000000", "b0000000", "c0000000"];
  for (const id of ids) {
    const isStuck = id.startsWith("a");
    await Bun.write(join(scratch.path, `${id}.record`), "");
    await Bun.write(
      join(scratch.path, `${id}.sh`),
      isStuck ? "exit 1" : `rm ${scratch.path}/${id}.record`,
    );
  }
  const text = shellText(healFile, { FOLDER: scratch.path, UNIT_PREFIX: "no-such-unit-" });
  const script = completeScript(`systemctl() { :; }\n${text}`);
  const child = Bun.spawn(["sh", "-s", "--", "e2e-heal-faults", ...ids], {
    stdin: new Blob([script]),
    stderr: "pipe",
  });
  expect(await new Response(child.stderr).text()).toBe("failed: fault a0000000 is still there\n");
  expect(await child.exited).toBe(1);
  const left = (await readdir(scratch.path)).filter((name) => name.endsWith(".record"));
  expect(left).toEqual(["a0000000.record"]);
});

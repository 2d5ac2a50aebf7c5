import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { findFaultNotes, keepFaultNote, removeFaultNote } from "../../../src/store/fault-notes.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const note = (id: string, second: number) => ({
  id,
  description: "clock +60 s on agent_0",
  endsAt: new Date(second * 1000),
});

test("notes are found until their faults end, the next to end first; damaged ones count for nothing", async () => {
  await using scratch = await scratchFolder();
  const [later, sooner] = [note("0000000a", 300), note("0000000b", 200)];
  for (const each of [later, sooner]) await keepFaultNote(scratch.path, each);
  await Bun.write(join(scratch.path, "fault-0000000c.json"), '{"id": "../../x"}');
  expect(await findFaultNotes(scratch.path, 100_000)).toMatchObject([sooner, later]);
  expect(await findFaultNotes(scratch.path, 200_000)).toMatchObject([later]);
  expect(await readdir(scratch.path)).not.toContain("fault-0000000b.json");
  await removeFaultNote(scratch.path, later.id);
  expect(await findFaultNotes(scratch.path, 100_000)).toEqual([]);
});

test("a cluster without a folder on this computer has none", async () => {
  await using scratch = await scratchFolder();
  const absent = join(scratch.path, "absent");
  await removeFaultNote(absent, "0000000a");
  expect(await findFaultNotes(absent, 0)).toEqual([]);
});

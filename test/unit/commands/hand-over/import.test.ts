import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { runCommandLine } from "../../../support/run-command.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test.each([
  ["nowhere.json", /^Cannot read nowhere\.json: .*\.$/],
  ["notes.txt", /notes\.txt/],
])("importing %s fails before the cloud is asked", async (file, text) => {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "notes.txt"), "not an export");
  const kind = { ...cloudKind, open: async () => Promise.reject(new TypeError("not used")) };
  const importing = runCommandLine(`import ${file}`, {
    kind,
    backend: {},
    nowMs: 0,
    cwd: folder.path,
  });
  const failure = await failureOf(importing);
  expect(failure.id).toBe("bad-usage");
  expect(failure.message).toMatch(text);
  expect(failure.hint).toMatch(/export/i);
});

test("an interruption while the file is read is no failure of the file", async () => {
  const setting = { kind: cloudKind, backend: {}, nowMs: 0, isInterrupted: true };
  expect((await failureOf(runCommandLine("import nowhere.json", setting))).message).toBe(
    "interrupted",
  );
});

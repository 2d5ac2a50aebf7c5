import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parseSendRequest } from "../../../../src/cluster/copy/send-files.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test.each([
  ["tmp/", '"tmp/" is not an absolute path; begin it with /, as in NODE:/tmp/'],
  ["", '"" is not an absolute path; begin it with /, as in NODE:/tmp/'],
  ["~/f", '"~/f" is not an absolute path; begin it with /, as in NODE:/tmp/'],
  ["/tmp/..", '"/tmp/.." names no file'],
])("the target %p is refused with a remedy", async (target, problem) => {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "f"), "");
  const given = { cwd: folder.path, signal: neverAborted };
  const { problems = [] } = await parseSendRequest(["f"], target, given);
  expect(problems.map(unmarked)).toEqual([problem]);
});

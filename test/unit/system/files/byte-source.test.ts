import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { sha256OfFile } from "../../../../src/system/files/byte-source.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("only regular files have a checksum: a pipe or a device would be read for ever", async () => {
  await using scratch = await scratchFolder();
  const [pipe, file] = [join(scratch.path, "pipe"), join(scratch.path, "file")];
  await Bun.$`mkfifo ${pipe}`;
  for (const path of [pipe, "/dev/zero"])
    expect(await failureOf(sha256OfFile(path, neverAborted))).toMatchObject({ code: "EINVAL" });
  expect(await failureOf(sha256OfFile(scratch.path, neverAborted))).toMatchObject({ code: "EISDIR" });
  await writeFile(file, "abc");
  expect(await sha256OfFile(file, neverAborted)).toBe(
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
  );
});

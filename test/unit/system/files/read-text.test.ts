import { expect, test } from "bun:test";
import { join } from "node:path";
import {
  readBody,
  readOwnText,
  readOwnTextIfThere,
  readText,
} from "../../../../src/system/files/read-text.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();

test("a text is read up to its limit, and a longer one is refused", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "text");
  await Bun.write(path, "é".repeat(50_000));
  expect(await readText(path, 100_000, signal)).toBe("é".repeat(50_000));
  expect(await readOwnText(path)).toBe("é".repeat(50_000));
  expect(await failureOf(readText(path, 99_999, signal))).toMatchObject({
    name: "TooLong",
    code: "EFBIG",
  });
});

test("a file without an end is refused, and a pipe that nobody writes to can be given up", async () => {
  await using folder = await scratchFolder();
  expect(await failureOf(readText("/dev/zero", 1_000_000, signal))).toMatchObject({
    code: "EFBIG",
  });
  const pipe = join(folder.path, "pipe");
  await Bun.$`mkfifo ${pipe}`.quiet();
  const controller = new AbortController();
  const reading = failureOf(readText(pipe, 10, controller.signal));
  controller.abort(new Error("interrupted"));
  expect((await reading).message).toBe("interrupted");
  // The runtime's own thread still waits for a writer, or is about to.
  await Bun.$`sh -c ${'echo x >"$0"'} ${pipe}`.nothrow().quiet();
});

test("a pipe in the place of one of our own files is refused at once", async () => {
  await using folder = await scratchFolder();
  const pipe = join(folder.path, "pipe");
  await Bun.$`mkfifo ${pipe}`.quiet();
  expect(await failureOf(readOwnText(pipe))).toMatchObject({ code: "EINVAL" });
  expect(await failureOf(readOwnText(folder.path))).toMatchObject({ code: "EISDIR" });
  expect(await failureOf(readOwnTextIfThere(folder.path))).toMatchObject({ code: "EISDIR" });
  expect(await readOwnTextIfThere(join(folder.path, "absent"))).toBeUndefined();
});

test("an answer is read up to its limit", async () => {
  expect(await readBody(new Response("é"), 2)).toBe("é");
  expect(await failureOf(readBody(new Response("éé"), 3))).toMatchObject({ code: "EFBIG" });
  expect(await readBody(new Response(null), 0)).toBe("");
});

import { expect, test } from "bun:test";
import { operatingSystemCheck } from "../../../src/doctor/operating-system.ts";
import { temporarySpaceCheck } from "../../../src/doctor/temporary-space.ts";
import { outcomeText } from "../../support/outcome-text.ts";

const neverAborted = new AbortController().signal;

test.each([
  ["linux", "pass: Linux 6.1 on x64"],
  ["darwin", "pass: macOS (Darwin) 6.1 on x64"],
  ["win32", "warn: This program is tried on Linux and macOS, not on win32. → Use a virtual machine with Linux."],
])("on %s", async (platform, text) => {
  const check = operatingSystemCheck({ platform, release: "6.1", architecture: "x64" });
  expect(outcomeText(await check.run(neverAborted))).toBe(text);
});

const spaceText = async (folder: string, bytes: number): Promise<string> =>
  outcomeText(await temporarySpaceCheck(folder, bytes).run(neverAborted));

test("room for what create may need", async () => {
  expect(await spaceText("/tmp", 1_000)).toStartWith("pass: ");
});

test("too little room: how much there is, and three ways out", async () => {
  expect(await spaceText("/tmp", 1e18)).toMatch(/^fail: \/tmp has [\d.]+ GB free, but .*TMPDIR.*--workspace-dir/);
});

test("no folder to put temporary files in", async () => {
  expect(await spaceText("/nowhere", 1)).toStartWith("fail: The folder /nowhere does not exist.");
});

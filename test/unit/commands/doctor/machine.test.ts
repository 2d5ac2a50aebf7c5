import { expect, test } from "bun:test";
import {
  machineChecks,
  operatingSystemCheck,
  temporarySpaceCheck,
} from "../../../../src/commands/doctor/machine-checks.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { outcomeText } from "../../../support/outcome-text.ts";

// Shows R7, R11.
test.each([
  ["linux", "6.1", "pass: Linux 6.1 on x64"],
  ["linux", "5.1.0-rc1", "pass: Linux 5.1.0-rc1 on x64"],
  ["linux", "10.0.1", "pass: Linux 10.0.1 on x64"],
  [
    "linux",
    "5.0.21",
    "warn: Linux 5.0.21 is older than 5.1, the oldest release that this program's runtime, Bun",
  ],
  [
    "linux",
    "4.18.0-553.el8",
    "warn: Linux 4.18.0-553.el8 is older than 5.1, the oldest release that this program's runtime, Bun",
  ],
  ["darwin", "22.0.0", "pass: macOS (Darwin) 22.0.0 on x64"],
  [
    "darwin",
    "21.6.0",
    "warn: macOS (Darwin) 21.6.0 is older than 22.0 (macOS 13), the oldest release that this program's runtime, Bun",
  ],
  [
    "win32",
    "10.0",
    "warn: This program is tested on Linux and macOS, not on win32. → Use a virtual machine with Linux.",
  ],
])("on %s %s", async (platform, release, text) => {
  const check = operatingSystemCheck({ platform, release, architecture: "x64" });
  expect(outcomeText(await check.run(neverAborted))).toStartWith(text);
});

const spaceText = async (folder: string, bytes: number): Promise<string> =>
  outcomeText(await temporarySpaceCheck(folder, bytes).run(neverAborted));

// Shows R8, R78.
test("room for what create may need", async () => {
  expect(await spaceText("/tmp", 1_000_000)).toBe(
    "pass: /tmp has the 0.001 GB of free space that create may need",
  );
});

test("too little room: how much there is, and three ways out", async () => {
  expect(await spaceText("/tmp", 1e18)).toMatch(
    /^warn: \/tmp has [\d.]+ GB of free space, but .*A large artifact .*TMPDIR.*`workspaceDir`/,
  );
});

test("no folder to put temporary files in", async () => {
  expect(await spaceText("/nowhere", 1)).toStartWith("fail: /nowhere does not exist.");
});

test.each([
  [[], "pass: "],
  [["BUN_BE_BUN"], "pass: "],
  [["BUN_OPTIONS"], "warn: BUN_OPTIONS is set, which changes how this program runs. → "],
  [
    ["BUN_BE_BUN", "BUN_INSPECT", "BUN_OPTIONS"],
    "warn: BUN_INSPECT and BUN_OPTIONS are set, which change how this program runs. → ",
  ],
])("variables of the runtime that were set, %j", async (runtimeVariables, text) => {
  const check = machineChecks({ environment: {}, runtimeVariables }, []).find(
    ({ name }) => name === "runtime",
  )!;
  expect(outcomeText(await check.run(neverAborted))).toStartWith(text);
});

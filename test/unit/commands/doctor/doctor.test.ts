import { optionName } from "../../../../src/references.ts";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { noColours } from "../../../../src/cli/terminal/colours.ts";
import { paintMark, reportText } from "../../../../src/commands/doctor/execute-doctor.ts";
import type { BackendKind } from "../../../../src/backend/contract.ts";
import {
  type Check,
  type CheckResult,
  fail,
  pass,
  skip,
  warn,
} from "../../../../src/model/check.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { runCommandLine } from "../../../support/run-command.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const results: readonly CheckResult[] = [
  {
    name: "ssh",
    status: "pass",
    message: "OpenSSH_9.2p1",
    details: ["Found in /usr/bin"],
    ms: 12.3,
  },
  {
    name: "state folder",
    status: "fail",
    message: "Others can write to it.",
    remedy: "chmod 700 it",
    ms: 1,
  },
  { name: "clock", status: "skip", message: "Not compared.", ms: 0 },
  { name: "browser", status: "warn", message: "None.", remedy: "Install one.", ms: 2_345 },
  { name: "engine", status: "pass", message: "Docker 24", ms: 1_000 },
];

test("a line a check, aligned, with what to do below it", () => {
  expect(`\n${reportText(results, { isVerbose: false, columns: 80 })}\n`).toMatchInlineSnapshot(`
    "
    ✔ ssh           OpenSSH_9.2p1
    ✖ state folder  Others can write to it.
                    → chmod 700 it
    – clock         Not compared.
    ! browser       None.
                    → Install one.
    ✔ engine        Docker 24
    "
  `);
});

test("further lines of a remedy begin where its text begins, and commands to copy stay whole", () => {
  const remedy = `Install it.\nOn Debian:\n    sudo apt-get install ${"x".repeat(70)}`;
  const text = reportText([{ name: "engine", status: "fail", message: "None.", remedy, ms: 1 }], {
    isVerbose: false,
    columns: 60,
  });
  const command = `                sudo apt-get install ${"x".repeat(70)}`;
  expect(text.split("\n")).toEqual([
    "✖ engine  None.",
    "          → Install it.",
    "            On Debian:",
    command,
  ]);
});

test("checks that were skipped for one reason share a row, and long lines wrap", () => {
  const message = "Not checked: there are no credentials, so the API cannot be asked.";
  const skipped = ["account", "region", "clock", "network", "image"].map((name): CheckResult => ({
    name,
    status: "skip",
    message,
    ms: 0,
  }));
  const text = reportText([results[0]!, ...skipped, results[2]!], {
    isVerbose: false,
    columns: 40,
  });
  expect(`\n${text}\n`).toMatchInlineSnapshot(`
    "
    ✔ ssh       OpenSSH_9.2p1
    – 5 checks  Not checked: there are no
                  credentials, so the API
                  cannot be asked.
    – clock     Not compared.
    "
  `);
});

test("up to four checks that were skipped for one reason have rows of their own", () => {
  const skipped = ["account", "region", "clock", "image"].map((name): CheckResult => ({
    name,
    status: "skip",
    message: "Not checked.",
    ms: 0,
  }));
  const text = reportText(skipped, { isVerbose: false, columns: 80 });
  expect(text.split("\n").map((line) => line.split(/ +/)[1])).toEqual([
    "account",
    "region",
    "clock",
    "image",
  ]);
});

test("-v adds details and times", () => {
  expect(`\n${reportText(results, { isVerbose: true, columns: 80 })}\n`).toMatchInlineSnapshot(`
    "
    ✔ ssh           OpenSSH_9.2p1 (12 ms)
                    Found in /usr/bin
    ✖ state folder  Others can write to it. (1 ms)
                    → chmod 700 it
    – clock         Not compared. (0 ms)
    ! browser       None. (2.3 s)
                    → Install one.
    ✔ engine        Docker 24 (1.0 s)
    "
  `);
});

test("only the mark is coloured, by status", () => {
  const colours = {
    ...noColours,
    green: (text: string) => `<green ${text}>`,
    red: (text: string) => `<red ${text}>`,
    yellow: (text: string) => `<yellow ${text}>`,
    dim: (text: string) => `<dim ${text}>`,
  };
  const lines = reportText(results, { isVerbose: false, columns: 80 }).split("\n");
  const painted = lines.map((line) => paintMark(line, colours)).join("\n");
  expect(painted).toContain("<green ✔> ssh ");
  const marks = painted.match(/<[^>]*>/g);
  expect(marks).toEqual(["<green ✔>", "<red ✖>", "<dim –>", "<yellow !>", "<green ✔>"]);
});

/** Runs the command with this check, among those of a machine without problems, unless these variables make some. */
async function runDoctor(
  words: string,
  outcome: Awaited<ReturnType<Check["run"]>>,
  variables = {},
) {
  await using folder = await scratchFolder();
  for (const name of ["ssh", "open", "xdg-open"]) {
    await writeFile(join(folder.path, name), "#!/bin/sh\necho OpenSSH_9.9\n", { mode: 0o755 });
  }
  const environment = {
    PATH: folder.path,
    HOME: folder.path,
    TMPDIR: folder.path,
    DISPLAY: ":0",
    ...variables,
  };
  const check: Check = { name: "engine", limitMs: 5_000, run: async () => outcome };
  const signals: AbortSignal[] = [];
  const waiting: BackendKind["doctor"]["checks"] = async ({ signal }, _input) => {
    signals.push(signal);
    return [check];
  };
  const setting = {
    kind: { ...containerKind, doctor: { ...containerKind.doctor, checks: waiting } },
    backend: {},
    clock: systemClock,
    nowMs: 0,
  };
  const ran = await runCommandLine(`doctor${words}`, { ...setting, environment });
  const { checks } = ran.data as { readonly checks: readonly CheckResult[] };
  const hasEnded = signals[0]?.aborted;
  return { ...ran, hasEnded, checks, engine: checks.find(({ name }) => name === "engine") };
}

test("a failed check makes doctor fail, and its remedy names options by their flags", async () => {
  const { status, stdout, told, engine } = await runDoctor(
    "",
    fail("No engine.", `Pass ${optionName("engine")}.`),
  );
  expect(status).toBe(1);
  expect(stdout).toContain("→ Pass --engine.");
  expect(stdout).not.toContain("\x1b");
  expect(engine as object).toEqual({
    name: "engine",
    status: "fail",
    message: "No engine.",
    remedy: "Pass --engine.",
  });
  expect(told).toEqual(["7 checks: 1 failed."]);
});

test.each([
  [pass("Docker 24"), {}, "no problems found"],
  [warn("It is old.", "Upgrade."), {}, "1 warning"],
  [warn("It is old.", "Upgrade."), { DISPLAY: "" }, "2 warnings"],
  [skip("It is somewhere else."), { DISPLAY: "" }, "1 warning, 1 skipped"],
])("doctor fails only if a check failed", async (outcome, variables, told) => {
  expect(await runDoctor("", outcome, variables)).toMatchObject({
    status: 0,
    told: [`7 checks: ${told}.`],
  });
});

test("with -v, JSON has the details of each check and its time", async () => {
  const { stdout, checks, engine } = await runDoctor(
    " -v --output json",
    pass("Docker 24", ["Found in /usr/bin"]),
  );
  expect(stdout).toContain("Found in /usr/bin");
  const { details: found, milliseconds } = engine as unknown as Readonly<Record<string, unknown>>;
  expect(milliseconds).toBeWithin(0, 60_000);
  expect(found).toEqual(["Found in /usr/bin"]);
  expect(checks.map(({ details }) => details)).toEqual([
    [],
    [],
    [],
    [],
    [],
    ["Found in /usr/bin"],
    [],
  ]);
});

test("when doctor ends, checks that take longer are told to stop", async () => {
  expect(await runDoctor("", pass("Docker 24"))).toMatchObject({ hasEnded: true });
});

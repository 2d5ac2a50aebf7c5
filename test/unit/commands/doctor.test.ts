import { expect, test } from "bun:test";
import { noColours } from "../../../src/cli/terminal/colours.ts";
import { reportText } from "../../../src/commands/doctor.ts";
import { containerDriver } from "../../../src/bin/container-driver.ts";
import { type Check, type CheckResult, fail, pass, warn } from "../../../src/model/check.ts";
import { runCommandLine } from "../../support/run-command.ts";

const results: readonly CheckResult[] = [
  { name: "ssh", status: "pass", message: "OpenSSH_9.2p1", details: ["Found in /usr/bin"], ms: 12.3 },
  { name: "state folder", status: "fail", message: "Others can write to it.", remedy: "chmod 700 it", ms: 1 },
  { name: "clock", status: "skip", message: "Not compared.", ms: 0 },
  { name: "browser", status: "warn", message: "None.", remedy: "Install one.", ms: 2_345 },
];

test("a line a check, aligned, with what to do below it", () => {
  expect(`\n${reportText(results, noColours, false)}\n`).toMatchInlineSnapshot(`
    "
    ✔ ssh           OpenSSH_9.2p1
    ✖ state folder  Others can write to it.
                    → chmod 700 it
    – clock         Not compared.
    ! browser       None.
                    → Install one.
    "
  `);
});

test("-v adds details and times", () => {
  expect(`\n${reportText(results, noColours, true)}\n`).toMatchInlineSnapshot(`
    "
    ✔ ssh           OpenSSH_9.2p1 (12 ms)
                    Found in /usr/bin
    ✖ state folder  Others can write to it. (1 ms)
                    → chmod 700 it
    – clock         Not compared. (0 ms)
    ! browser       None. (2.3 s)
                    → Install one.
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
  const marks = reportText(results, colours, false).match(/<[^>]*>/g);
  expect(marks).toEqual(["<green ✔>", "<red ✖>", "<dim –>", "<yellow !>"]);
});

/** Runs the command with this check, among those of the machine. */
async function runDoctor(words: string, outcome: Awaited<ReturnType<Check["run"]>>) {
  const check: Check = { name: "engine", limitMs: 5_000, run: async () => outcome };
  const driver = { ...containerDriver, doctorChecks: async () => [check] };
  const ran = await runCommandLine(`doctor${words}`, { driver, backend: {}, nowMs: 0 });
  const { checks } = ran.data as { readonly checks: readonly CheckResult[] };
  return { ...ran, engine: checks.find(({ name }) => name === "engine") };
}

test("a failed check makes doctor fail, and its remedy names options by their flags", async () => {
  const { status, stdout, told, engine } = await runDoctor("", fail("No engine.", "Pass `engine`."));
  expect(status).toBe(1);
  expect(stdout).toContain("→ Pass --engine.");
  expect(engine as object).toEqual({ name: "engine", status: "fail", message: "No engine.", remedy: "Pass --engine." });
  expect(told.at(-1)).toMatch(/^\d+ checks: \d+ failed/);
});

test.each([pass("Docker 24"), warn("It is old.", "Upgrade.")])(
  "doctor fails only if a check failed",
  async (outcome) => {
    const { status, told } = await runDoctor("", outcome);
    expect(status).toBe(told.at(-1)!.includes("failed") ? 1 : 0);
  },
);

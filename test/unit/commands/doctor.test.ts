import { expect, test } from "bun:test";
import { noColours } from "../../../src/cli/terminal/colours.ts";
import { reportText } from "../../../src/commands/doctor.ts";
import type { CheckResult } from "../../../src/model/check.ts";

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

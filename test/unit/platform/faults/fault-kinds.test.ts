/** What the options of faults accept on the command line. */
import { expect, test } from "bun:test";
import { faultKinds, faultRows } from "../../../../src/platform/faults/fault-kinds.ts";

const options = new Map(
  faultKinds.flatMap((kind) =>
    Object.values(faultRows[kind].options).map((each) => [each.flag as string, each] as const),
  ),
);
const read = (flag: string, text: string): unknown => options.get(flag)?.rule?.read(text);

test.each([
  ["--delay", "200ms", 200],
  ["--loss", "5%", 5],
  ["--loss", "0.25", 0.25],
  ["--rate", "512kbit", 512],
  ["--rate", "1mbit", 1000],
  ["--rate", "2gbit", 2_000_000],
  ["--offset", "+1h", 3_600_000],
  ["--offset", "1h", 3_600_000],
  ["--offset", "-30s", -30_000],
  ["--leave", "0", 0],
  ["--leave", "64K", 65_536],
  ["--leave", "1G", 2 ** 30],
  ["--cpu", "90%", 90],
  ["--memory", "80", 80],
])("%s reads %s", (flag, text, expected) => {
  expect(read(flag, text)).toBe(expected);
});

test.each([
  ["--delay", ["", "1", "-1s"]],
  ["--loss", ["", "%", "5 %", "-1%", "1e2", "0.123%"]],
  ["--rate", ["", "1", "1 mbit", "1.5mbit", "1Mbit", "-1kbit"]],
  ["--offset", ["", "+", "--1h", "1", "+-1s"]],
  ["--memory", ["", "2g", "-1%"]],
  ["--leave", ["", "K", "1T", "1.5G", "-1", "1k"]],
])("%s refuses what has another form", (flag, texts) => {
  expect(texts.map((text) => read(flag, text))).toEqual(texts.map(() => undefined));
  expect(options.get(flag)?.rule?.what).toStartWith("a ");
});

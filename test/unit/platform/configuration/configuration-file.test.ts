import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  parseConfiguration,
  readExtraConfiguration,
  renderConfiguration,
} from "../../../../src/platform/configuration/configuration-file.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const { signal } = new AbortController();
const parse = (text: string) => parseConfiguration(text, "extra.yaml");

test.each([
  ["security: strict\n", { security: "strict" }],
  ["", {}],
  ["# nothing but a comment\n---\n", {}],
  ['{"json": [1, 2.5, null]}', { json: [1, 2.5, null] }],
  ["enabled: no\nmode: 0755\nquoted: 'no'\n", { enabled: false, mode: 493, quoted: "no" }],
  ["base: &b {a: 1}\nuse: {<<: *b, c: 2}\n", { base: { a: 1 }, use: { a: 1, c: 2 } }],
  ["license_key_contents: |\n  one\n  two\n", { license_key_contents: "one\ntwo\n" }],
  ["id: 123456789012345678901\nsmall: 7\n", { id: 123456789012345678901n, small: 7 }],
])("%p is read", async (text, value) => {
  expect(await parse(text)).toEqual({ value });
});

test.each([
  ["a: 1\nb: 2\na: 3\n", ["extra.yaml:3:1: Map keys must be unique"]],
  ["a: 1\n---\nb: 2\n", ["extra.yaml:2:1: a second document begins here; put all settings into one"]],
  ["- a\n- b\n", ["extra.yaml: the top level must be a mapping (key: value)."]],
  ["just text\n", ["extra.yaml: the top level must be a mapping (key: value)."]],
  ["a: !secret x\n", []],
  ['license_key_contents: "SECRET\nb: [\n', []],
  ["a: *missing\n", []],
])("%j is refused with place and reason", async (text, problems) => {
  const parsed = await parse(text);
  if (problems.length > 0) expect(parsed.problems?.map(unmarked)).toEqual(problems);
  expect(parsed.problems?.[0]).toStartWith("extra.yaml");
  expect(parsed.problems?.join(" ")).not.toContain("SECRET");
});

test("a bomb of aliases is refused", async () => {
  const lines = Array.from(
    { length: 9 },
    (_, level) => `a${level + 1}: &a${level + 1} [${Array(9).fill(`*a${level}`).join(", ")}]`,
  );
  expect(await parse(`a0: &a0 [x]\n${lines.join("\n")}\n`)).toEqual({
    problems: ["extra.yaml: cannot resolve its anchors and aliases."],
  });
});

test.each([
  { truth: "no", on: "on", octal: "0755", number: "1.10", time: "12:30", empty: "", nothing: null, date: "2020-01-01" },
  { text: "a: b # c\n\ttabbed", unicode: "grüße", long: `${"word ".repeat(60)}end`, dash: "- x", star: "*x" },
  { control: "a\u0085b\u007f\u2028", equals: "=", yes: "y", sexagesimal: "1:30:00", comment: "a #b" },
  { list: [], map: {}, nested: [{ a: [1, 2] }], big: 123456789012345678901n },
])("what is rendered is read back as it was: %p", async (configuration) => {
  expect(await parse(await renderConfiguration(configuration))).toEqual({ value: configuration });
});

test("a file is read with its umlauts", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "extra.yaml");
  await Bun.write(path, "text: grüße\n");
  expect(await readExtraConfiguration(path, signal)).toEqual({ value: { text: "grüße" } });
});

test.each([
  ["missing", "the file does not exist."],
  ["latin1/below", "the file does not exist."],
  ["folder", "is a folder, not a file."],
  ["latin1", "is not UTF-8 text."],
  ["x".repeat(300), "cannot be read (ENAMETOOLONG)."],
])("a file that can't be read is named with the reason: %s", async (name, reason) => {
  await using folder = await scratchFolder();
  await mkdir(join(folder.path, "folder"));
  await Bun.write(join(folder.path, "latin1"), Buffer.from("text: gr\xfc\xdfe\n", "latin1"));
  const path = join(folder.path, name);
  expect(await readExtraConfiguration(path, signal)).toEqual({ problems: [`${path}: ${reason}`] });
});

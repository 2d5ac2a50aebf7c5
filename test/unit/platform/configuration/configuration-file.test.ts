import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  configurationText,
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
  ["enabled: false\nmode: 0o755\nquoted: 'no'\n", { enabled: false, mode: 493, quoted: "no" }],
  ["base: &b {a: 1}\nuse: {<<: *b, c: 2}\n", { base: { a: 1 }, use: { a: 1, c: 2 } }],
  ["license_key_contents: |\n  one\n  two\n", { license_key_contents: "one\ntwo\n" }],
  ["id: 123456789012345678901\nsmall: 7\n", { id: 123456789012345678901n, small: 7 }],
])("%p is read", async (text, value) => {
  expect(await parse(text)).toEqual({ value });
});

/** Texts of YAML 1.2 that older readers take for something else, and what they are. */
const changeable: readonly (readonly [text: string, value: Readonly<Record<string, unknown>>])[] = [
  ["position: {x: 1, y: 2}\nY: n\nN: Y\n", { position: { x: 1, y: 2 }, Y: "n", N: "Y" }],
  [
    "day: 2023-05-15\ntime: 2001-12-14t21:59:43.10-05:00\n",
    { day: "2023-05-15", time: "2001-12-14t21:59:43.10-05:00" },
  ],
  ["2023-05-15: x\n12:30: y\n", { "2023-05-15": "x", "12:30": "y" }],
  [
    "a: 12:30:45\nb: 22:22\nc: 190:20:30.15\nd: [80:8080]\n",
    { a: "12:30:45", b: "22:22", c: "190:20:30.15", d: ["80:8080"] },
  ],
  ["a: 0o10\nb: 0x1F\nc: +7\nd: .5\ne: 1e3\nf: 1.\n", { a: 8, b: 31, c: 7, d: 0.5, e: 1000, f: 1 }],
  ["big: 1e300\nsmall: -1.5e-7\nless: 1e-7\n", { big: 1e300, small: -1.5e-7, less: 1e-7 }],
  ["a: =\n=: <<\n'<<': {b: 1}\n", { a: "=", "=": "<<", "<<": { b: 1 } }],
  ["a: !!str 010\nb: ! 1e3\nc: !!int '3'\nd: !!null ''\n", { a: "010", b: "1e3", c: 3, d: null }],
  [
    "'on': 1\n'1': 2\n'0o10': 3\n'1e3': 4\n'null': 5\n'': 6\n",
    { on: 1, "1": 2, "0o10": 3, "1e3": 4, null: 5, "": 6 },
  ],
  [
    "a: TRUE\nb: ~\nc: Null\nd:\ne: nO\nf: _1\ng: 10.0.0.4\n",
    { a: true, b: null, c: null, d: null, e: "nO", f: "_1", g: "10.0.0.4" },
  ],
  [
    "b: &b {a: 1, y: 3}\nfirst: {<<: *b, a: 5}\nlast: {a: 5, <<: [*b, {a: 6, z: 7}]}\n",
    { b: { a: 1, y: 3 }, first: { a: 5, y: 3 }, last: { a: 5, y: 3, z: 7 } },
  ],
  ["%YAML 1.2\n---\na: n\n", { a: "n" }],
  ['{"a": "\\ud83d\\ude00", "b": 1e3, "c": "\\/"}', { a: "\u{1f600}", b: 1000, c: "/" }],
];

test.each(changeable)(
  "%j keeps its meaning of YAML 1.2 as YAML and as JSON",
  async (text, value) => {
    const parsed = await parse(text);
    expect(parsed).toEqual({ value });
    expect(await parse(await configurationText(parsed.value!, "yaml"))).toEqual({ value });
    expect(JSON.parse(await configurationText(parsed.value!, "json"))).toEqual(value);
  },
);

const hasPyYaml =
  Bun.spawnSync(["python3", "-c", "import yaml"], { stderr: "ignore" }).exitCode === 0;

test.skipIf(!hasPyYaml).each(changeable)(
  "%j means the same to a reader of YAML 1.1",
  async (text, value) => {
    const rendered = await configurationText((await parse(text)).value!, "yaml");
    const program =
      "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin.buffer), sys.stdout)";
    const reader = Bun.spawn(["python3", "-c", program], { stdin: new Blob([rendered]) });
    expect(await reader.stdout.json()).toEqual(value);
  },
);

test("what is written quotes texts and keys that any version reads as something else, and nothing more", async () => {
  const text = `y: n\nNo_1: {"off": 2023-05-15, "12:30": =}\n"<<": 1e300\nplain-key: 12345678901234567890123\n`;
  expect(await renderConfiguration((await parse(text)).value!)).toBe(
    `"y": "n"\nNo_1:\n  "off": "2023-05-15"\n  "12:30": "="\n"<<": 1.0e+300\nplain-key: 12345678901234567890123\n`,
  );
});

test("integers of any length are exact in JSON too", async () => {
  const parsed = await parse(
    "id: 90071992547409931\nmore: [0xffffffffffffffffff, -123456789012345678901]\n",
  );
  expect(await configurationText(parsed.value!, "json")).toBe(
    '{"id":90071992547409931,"more":[4722366482869645213695,-123456789012345678901]}\n',
  );
});

const otherReading = /YAML 1\.1 and 1\.2 read this differently: put quotes around it/;
const noTag = /JSON has no values with this tag/;
const noKey = /a key must be text: put quotes around it/;

test.each([
  ...[
    "yes",
    "No",
    "ON",
    "off",
    "010",
    "08",
    "00",
    "-07",
    "0b11",
    "-0x1F",
    "1_000",
    "1_0.5",
    "685.230_15e+03",
  ].map((word) => [`a: [${word}]`, 5, otherReading] as const),
  ["no: 1", 1, otherReading],
  ["a: !!set {b, c}", 4, noTag],
  ["a: !!omap [b: 1]", 4, noTag],
  ["a: !!pairs [b: 1]", 4, noTag],
  ["a: !!binary aGk=", 4, noTag],
  ["a: !!timestamp 2020-01-01", 4, noTag],
  ["a: !!bool yes", 4, noTag],
  ["a: !vault x", 4, noTag],
  ["a: !!merge '<<'", 12, noTag],
  ["a: .inf", 4, /JSON has no such number/],
  ["a: -.INF", 4, /JSON has no such number/],
  ["a: .nan", 4, /JSON has no such number/],
  ["a: 1e400", 4, /JSON has no such number/],
  ["1: 2", 1, noKey],
  ["~: 2", 1, noKey],
  ["true: 2", 1, noKey],
  ["? [a]\n: b", 3, noKey],
  ["? {a: b}\n: b", 3, noKey],
  ["a: {b: &c d, *c : e}", 14, noKey],
  [": 2", 1, noKey],
  ['a: "\\ud83d"', 4, /this text has half of a character/],
  ["%YAML 1.1\n---\na: n", 1, /this must be YAML 1\.2/],
  ["a: {b: &c {d: 1}, <<: *c, <<: *c}", 27, /Map keys must be unique/],
  ["a: {b: *c, d: &c 1}", 8, /no anchor/],
  ["a: [1, *c]", 8, /no anchor/],
  ["a: {<<: *c}", 9, /no anchor/],
  ["a: {<<: [*c]}", 10, /no anchor/],
  ["a: {<<: text}", 5, /followed by a mapping/],
  ["a: {b: &c [1], <<: *c}", 16, /followed by a mapping/],
  ["a: {b: &c 1, <<: [{}, *c]}", 14, /followed by a mapping/],
] as const)(
  "%j is refused, because it would not arrive as it is written",
  async (text, column, reason) => {
    const [found = "", ...more] = (await parse(text)).problems ?? [];
    expect(more).toEqual([]);
    expect(unmarked(found)).toStartWith(`extra.yaml:1:${column}: `);
    expect(unmarked(found)).toMatch(reason);
  },
);

test.each([
  ["a: 1\nb: 2\na: 3\n", ["extra.yaml:3:1: Map keys must be unique"]],
  [
    "a: 1\n---\nb: 2\n",
    ["extra.yaml:2:1: a second document begins here; put all settings into one"],
  ],
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
    problems: [
      "extra.yaml: cannot resolve its anchors and aliases: an alias stands for too much, or for what it is in.",
    ],
  });
});

const nestedFlow = (levels: number): string => `a: ${"[".repeat(levels)}${"]".repeat(levels)}\n`;
const chain = (links: number): string =>
  Array.from(
    { length: links },
    (_, index) => `a${index + 1}: &a${index + 1} {b: *a${index}}\n`,
  ).join("");

test("a text is refused if its levels, or those of what its aliases stand for, are too many", async () => {
  const tooDeep = { problems: ["extra.yaml: it is nested too deeply; 100 levels are allowed."] };
  expect(await parse(nestedFlow(100))).toEqual(tooDeep);
  expect(await parse(nestedFlow(3_000))).toEqual(tooDeep);
  expect(await parse(`a0: &a0 ${nestedFlow(94).slice(3)}${chain(6)}`)).toEqual(tooDeep);
  expect((await parse(nestedFlow(99))).problems).toBeUndefined();
  expect((await parse(`a0: &a0 ${nestedFlow(94).slice(3)}${chain(5)}`)).problems).toBeUndefined();
});

test.each([
  {
    truth: "no",
    on: "on",
    octal: "0755",
    number: "1.10",
    time: "12:30",
    empty: "",
    nothing: null,
    date: "2020-01-01",
  },
  {
    text: "a: b # c\n\ttabbed",
    unicode: "grüße",
    long: `${"word ".repeat(60)}end`,
    dash: "- x",
    star: "*x",
  },
  {
    control: "a\u0085b\u007f\u2028",
    equals: "=",
    yes: "y",
    sexagesimal: "1:30:00",
    comment: "a #b",
  },
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
  ["folder", "it is a folder, not a file."],
  ["latin1", "some of its bytes are not UTF-8."],
  ["x".repeat(300), "name too long."],
])("a file that can't be read is named with the reason: %s", async (name, reason) => {
  await using folder = await scratchFolder();
  await mkdir(join(folder.path, "folder"));
  await Bun.write(join(folder.path, "latin1"), Buffer.from("text: gr\xfc\xdfe\n", "latin1"));
  const path = join(folder.path, name);
  expect(await readExtraConfiguration(path, signal)).toEqual({ problems: [`${path}: ${reason}`] });
});

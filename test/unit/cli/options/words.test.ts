import { expect, test } from "bun:test";
import { flag, option, counted } from "../../../../src/cli/options/option.ts";
import { parseCommandLine, readWords } from "../../../../src/cli/options/parse.ts";
import { Problems } from "../../../../src/cli/options/problems.ts";
import { text } from "../../../../src/cli/options/value-types.ts";
import { habitsOf } from "../../../../src/commands/habits.ts";
import { create } from "./commands.ts";

const declared = [
  option(text, { flag: "--cluster-id", short: "-c", summary: "" }),
  option(text, { flag: "--env", summary: "", repeatable: true }),
  option(text, { flag: "--masters", summary: "" }),
  flag({ flag: "--dry-run", summary: "" }),
  counted({ flag: "--verbose", short: "-v", summary: "" }),
];

function read(argv: readonly string[], stopAtPositional = false): unknown {
  const words = readWords(declared, argv, stopAtPositional);
  const texts = [...words.texts].filter(([, given]) => given.length > 0);
  return { ...Object.fromEntries(texts), words: words.positionals, problems: words.problems };
}

test.each([
  [["-c", "a", "x"], { "--cluster-id": ["a"], words: ["x"] }],
  [["x", "--cluster-id=a"], { "--cluster-id": ["a"], words: ["x"] }],
  [["--cluster-id", "", "--env="], { "--cluster-id": [""], "--env": [""], words: [] }],
  [["--env=A=b=c", "--env", "C=--d"], { "--env": ["A=b=c", "C=--d"], words: [] }],
  [
    ["--env=A=one\ntwo\r\u2028three", "a\nb"],
    { "--env": ["A=one\ntwo\r\u2028three"], words: ["a\nb"] },
  ],
  [["--cluster-id=-a", "-"], { "--cluster-id": ["-a"], words: ["-"] }],
  [["--cluster-id", "-"], { "--cluster-id": ["-"], words: [] }],
  [["-vvv", "-v", "--verbose"], { "--verbose": ["", "", "", "", ""], words: [] }],
  [["-vcab"], { "--verbose": [""], "--cluster-id": ["ab"], words: [] }],
  [["--masters", "-1"], { "--masters": ["-1"], words: [] }],
  [["-vc", "a"], { "--verbose": [""], "--cluster-id": ["a"], words: [] }],
  [["--dry-run", "--", "--masters", "--nonsense", "--dry-run=x"], { "--dry-run": [""], words: ["--masters", "--nonsense", "--dry-run=x"] }], // prettier-ignore
])("%j is understood", (argv, expected) => {
  expect(read(argv)).toEqual({ ...expected, problems: [] });
});

test("where words are another program's, options end at the first of them", () => {
  const argv = ["-v", "pytest", "-v", "--masters", "--dry-run=no", "--", "x\ny"];
  expect(read(argv, true)).toEqual({ "--verbose": [""], words: argv.slice(1), problems: [] });
  expect(read(["--", "--masters"], true)).toEqual({ words: ["--masters"], problems: [] });
});

test.each([
  [["--mastres", "3"], ["--mastres: no such option; did you mean --masters?"]],
  [["--mastres=3", "--xyz", "-q"], ["--mastres: no such option; did you mean --masters?", "--xyz: no such option", "-q: no such option"]], // prettier-ignore
  [["-vq"], ["-q: no such option"]],
  [["--dry-run=false"], ["--dry-run: takes no value"]],
  [["--masters 3", "a.sh"], ["--masters: its value is in the same word; write --masters=…"]],
  [["--verbose=3", "-v"], ["--verbose: takes no value"]],
  [
    ["--masters"],
    ["--masters: the value is missing (if it begins with a dash, write --masters=-…)"],
  ],
  [
    ["--cluster-id=cc", "-c"],
    ["--cluster-id: the value is missing (if it begins with a dash, write --cluster-id=-…)"],
  ],
  [
    ["-c", "--masters", "3"],
    ["--cluster-id: the value is missing (if it begins with a dash, write --cluster-id=-…)"],
  ],
  [["--masters", "--nonsense", "--dry-run=1"], ["--masters: the value is missing (if it begins with a dash, write --masters=-…)", "--nonsense: no such option", "--dry-run: takes no value"]], // prettier-ignore
  [["--a: b (alias for --c)", "---", "--=x"], ["--a: b (alias for --c): no such option", "---: no such option", "--: no such option"]], // prettier-ignore
])("everything that is wrong with %j is found", (argv, problems) => {
  expect(readWords(declared, argv, false).problems).toEqual(problems);
});

test("a command's own options come before habits, which stand only for options that it has", () => {
  const options = new Map([["-v", "--dry-run"], ["-m", "--masters"], ["--three", "--masters=3"], ["-o", "--output"]]); // prettier-ignore
  const { texts, problems } = readWords(declared, ["-v", "-m", "1", "--three", "-o"], false, {
    habits: { ...habitsOf("example"), options },
  });
  expect(texts.get("--verbose")).toEqual([""]);
  expect(texts.get("--masters")).toEqual(["1", "3"]);
  expect(problems).toEqual(["-o: no such option"]);
});

test.each([
  [["a.sh", "--variant", "oss", "--masters"], "the value is missing"],
  [["--variant oss", "a.sh", "--masters=3"], "its value is in the same word"],
])("what is wrong with the value in %j is the only problem", async (argv, problem) => {
  const problems = new Problems("");
  const reader = { invocation: { cwd: "/", environment: {} }, problems, hide: () => {} };
  await parseCommandLine(create, argv, reader);
  if (argv.includes("--masters")) problems.add("--masters: must be odd");
  expect(problems.all).toEqual([expect.stringContaining(problem)]);
});

test("an unknown option that looks like one with a value swallows its value, so that nothing else seems wrong", () => {
  expect(read(["--mastres", "3", "x"])).toMatchObject({ words: ["x"] });
});

test("names from the prototype of objects are names like any other", () => {
  const argv = ["--constructor", "--__proto__", "--toString=1"];
  expect(readWords(declared, argv, false).problems).toEqual(
    argv.map((each) => `${each.split("=")[0]}: no such option`),
  );
});

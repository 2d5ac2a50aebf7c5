import { expect, test } from "bun:test";
import { defineCommand, type Command } from "../../../../src/cli/command.ts";
import {
  argument,
  BadValue,
  flag,
  option,
  wordsArgument,
  counted,
} from "../../../../src/cli/options/option.ts";
import { parseCommandLine, readWords } from "../../../../src/cli/options/parse.ts";
import { Problems } from "../../../../src/cli/options/problems.ts";
import {
  anyText,
  choice,
  count,
  duration,
  outputFormat,
  path,
  text,
  value,
  verbose,
} from "../../../../src/cli/options/value-types.ts";
import { habitsOf } from "../../../../src/commands/habits.ts";
import { ClusterError } from "../../../../src/errors.ts";

const create = defineCommand({
  name: "create",
  summary: "",
  description: "",
  positionals: { url: argument(text, { name: "ARTIFACT_URL", summary: "", required: true }) },
  options: {
    variant: option(choice(["oss", "enterprise"]), {
      flag: "--variant",
      summary: "",
      required: true,
    }),
    masters: option(count({ minimum: 1, maximum: 9 }), {
      flag: "--masters",
      summary: "",
      default: 1,
    }),
    tags: option(value(parseTag), { flag: "--custom-tag", summary: "", repeatable: true }),
    license: option(path, { flag: "--license-key", summary: "", environment: "LICENSE" }),
    timeout: option(duration, { flag: "--timeout", summary: "", default: 60_000 }),
    password: option(anyText, {
      flag: "--password",
      summary: "",
      secret: true,
      environment: "PASSWORD",
    }),
    dryRun: flag({ flag: "--dry-run", summary: "" }),
    output: outputFormat(["text", "json"]),
    verbose,
  },
  examples: [],
  run: async () => {},
});

const copy: Command = {
  ...create,
  options: {
    ...create.options,
    from: option(text, {
      flag: "--from",
      summary: "",
      replaces: ["url", "variant", "masters", "dryRun"],
    }),
  },
};

const sync = defineCommand({
  name: "sync",
  summary: "",
  description: "",
  positionals: {
    checkout: argument(path, {
      name: "DIR",
      summary: "",
      environment: "CHECKOUT",
      defaultFrom: ({ cwd }) => cwd,
    }),
  },
  options: {},
  examples: [],
  run: async () => {},
});

const run = defineCommand({
  name: "run",
  summary: "",
  description: "",
  positionals: { words: wordsArgument("words", { name: "NODE_ARGS", summary: "" }) },
  options: { node: option(text, { flag: "--node", summary: "" }) },
  examples: [],
  run: async () => {},
});

const once: Command = {
  ...copy,
  positionals: {
    ...create.positionals,
    words: wordsArgument("after-dashes", { name: "-- COMMAND", summary: "" }),
  },
};

test.each([
  [
    "--variant oss a.sh -- ls -v --masters 3",
    { url: "a.sh", words: ["ls", "-v", "--masters", "3"] },
  ],
  ["a.sh --variant oss -- ls -- --help", { url: "a.sh", words: ["ls", "--", "--help"] }],
  ["--from x:y -- ls", { words: ["ls"] }],
])("all words after the first dashes are one argument: %s", async (line, expected) => {
  const { values, problems } = await parse(once, line.split(" "));
  expect({ values, problems }).toMatchObject({ values: expected, problems: [] });
});

test.each([
  ["--variant oss a.sh", ["-- COMMAND: required"]],
  ["--variant oss a.sh --", ["-- COMMAND: required"]],
  ["--variant oss a.sh ls", ["-- COMMAND: required", '"ls": unexpected argument']],
  ["--variant oss -- a.sh ls", ["ARTIFACT_URL: required"]],
  [
    "--variant -- a.sh",
    [
      "--variant: the value is missing (if it begins with a dash, write --variant=-…)",
      "ARTIFACT_URL: required",
    ],
  ],
])("a line without what belongs before or after the dashes: %s", async (line, expected) => {
  expect((await parse(once, line.split(" "))).problems).toEqual(expected);
});

async function parseTag(given: string): Promise<readonly string[]> {
  await Promise.resolve();
  if (!given.includes(":")) throw new BadValue(`"${given}" has no colon`);
  return given.split(":");
}

async function parse(
  command: Command,
  argv: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{
  values: Readonly<Record<string, unknown>>;
  problems: readonly string[];
  hidden: readonly string[];
}> {
  const hidden: string[] = [];
  const problems = new Problems("help");
  const hide = (secret: string): void => void hidden.push(secret);
  const { values } = await parseCommandLine(command, argv, {
    invocation: { cwd: "/home/me", environment },
    problems,
    hide,
  });
  return { values, problems: problems.all, hidden };
}

test("values come typed, defaults where nothing is given, in any order of options and arguments", async () => {
  const argv = [
    "--variant",
    "oss",
    "a.sh",
    "--masters=3",
    "--custom-tag",
    "a:b",
    "-vv",
    "--custom-tag=c:d",
  ];
  expect(await parse(create, argv)).toEqual({
    values: {
      url: "a.sh",
      variant: "oss",
      masters: 3,
      tags: [
        ["a", "b"],
        ["c", "d"],
      ],
      timeout: 60_000,
      dryRun: false,
      output: "text",
      verbose: 2,
    },
    problems: [],
    hidden: [],
  });
});

// Shows R91.
test("everything that is wrong is told at once", async () => {
  const argv =
    "--mastres 3 --masters 12 --timeout 5 --timeout 6m --custom-tag ab --custom-tag a:b --license-key".split(
      " ",
    );
  const { problems, values } = await parse(create, [...argv, "--output", "xml", "--dry-run=no"]);
  expect(problems).toEqual([
    "--mastres: no such option; did you mean --masters?",
    "--license-key: the value is missing (if it begins with a dash, write --license-key=-…)",
    "--dry-run: takes no value",
    "--variant: required (oss, enterprise)",
    '--masters: "12" is not a whole number from 1 to 9',
    '--custom-tag: "ab" has no colon',
    "--timeout: given more than once",
    '--output: "xml" is not one of text, json',
    "ARTIFACT_URL: required",
  ]);
  expect(values).toEqual({ dryRun: false, verbose: 0 });
});

test.each([
  [["--masters", ""], '--masters: "" is not a whole number from 1 to 9'],
  [["--masters=-1"], '--masters: "-1" is not a whole number from 1 to 9'],
  [["--masters", "0x3"], '--masters: "0x3" is not a whole number from 1 to 9'],
  [
    ["--masters", `7${"0".repeat(200)}`],
    `--masters: "7${"0".repeat(99)}…" is not a whole number from 1 to 9`,
  ],
  [["--masters", "3 "], '--masters: "3 " is not a whole number from 1 to 9'],
  [["--license-key", ""], "--license-key: the value is empty"],
  [["--timeout", ""], '--timeout: "" is not a duration such as 90s, 15m or 1h30m'],
  [["", "--dry-run"], "ARTIFACT_URL: the value is empty"],
  [["b"], '"b": unexpected argument'],
])("%j is refused", async (argv, problem) => {
  const argument_ = argv[0] === "" ? [] : ["a"];
  expect((await parse(create, ["--variant", "oss", ...argument_, ...argv])).problems).toEqual([
    problem,
  ]);
});

test("a variable supplies a value that the command line doesn't, and is named when it is wrong", async () => {
  const argv = ["--variant", "oss", "a"];
  expect((await parse(create, argv, { LICENSE: "keys/one" })).values["license"]).toBe(
    "/home/me/keys/one",
  );
  expect(
    (await parse(create, [...argv, "--license-key", "/two"], { LICENSE: "one" })).values["license"],
  ).toBe("/two");
  expect((await parse(create, argv, { LICENSE: "" })).values["license"]).toBeUndefined();
  expect((await parse(sync, [], { CHECKOUT: "sources" })).values).toEqual({
    checkout: "/home/me/sources",
  });
  expect((await parse(sync, [])).values).toEqual({ checkout: "/home/me" });
  const strict = { ...sync, positionals: { n: argument(count({ minimum: 0, maximum: 1 }), { name: "N", summary: "", environment: "N" }) } }; // prettier-ignore
  expect((await parse(strict, [], { N: "x" })).problems).toEqual([
    'N: "x" is not a whole number from 0 to 1',
  ]);
});

test("secrets are hidden before they are looked at; a dash is none", async () => {
  const argv = ["--variant", "oss", "a"];
  expect((await parse(create, [...argv, "--password", "hunter22"])).hidden).toEqual(["hunter22"]);
  expect((await parse(create, argv, { PASSWORD: "hunter33" })).hidden).toEqual(["hunter33"]);
  expect((await parse(create, [...argv, "--password", "-"])).hidden).toEqual([]);
});

test("the words of another program are passed on untouched", async () => {
  const argv = ["--node", "agent_0", "pytest", "-v", "--node", "x", "--help", "--", "-h"];
  expect((await parse(run, argv)).values).toEqual({ node: "agent_0", words: argv.slice(2) });
  expect((await parse(run, ["--", "-x"])).values).toEqual({ words: ["-x"] });
  expect((await parse(run, ["--node", "agent_0"])).problems).toEqual(["NODE_ARGS: required"]);
});

test.each(["--help", "-h", "-vh", "--nonsense --help"])(
  "%s asks for help, whatever else is wrong",
  async (line) => {
    const reader = {
      invocation: { cwd: "/", environment: {} },
      problems: new Problems(""),
      hide: () => {},
    };
    expect(await parseCommandLine(create, line.split(" "), reader)).toEqual({
      isHelpWanted: true,
      values: {},
    });
    expect(reader.problems.all).toEqual([]);
  },
);

test("a fault in a parse function is no fault of the user", async () => {
  const broken = { ...sync, positionals: { x: argument(value(() => JSON.parse("{") as string), { name: "X", summary: "" }) } }; // prettier-ignore
  expect(await parse(broken, ["a"]).catch((error: unknown) => error)).toBeInstanceOf(SyntaxError);
});

test("problems become one error that lists them all", () => {
  const problems = new Problems("cluster-cloud create --help");
  problems.throwIfAny();
  problems.add("--a: wrong");
  problems.add("--a: wrong");
  expect(() => problems.throwIfAny()).toThrow(new ClusterError("bad-usage", "--a: wrong"));
  problems.add("--b: wrong too");
  try {
    problems.throwIfAny();
    expect.unreachable();
  } catch (error) {
    expect(error).toMatchObject({
      id: "bad-usage",
      message: "2 problems:\n  --a: wrong\n  --b: wrong too",
      hint: "See cluster-cloud create --help",
      facts: { problems: ["--a: wrong", "--b: wrong too"] },
    });
  }
});

test("an option that replaces others makes them unnecessary, and they have no value", async () => {
  const { values, problems } = await parse(copy, ["--from", "a"]);
  expect(problems).toEqual([]);
  expect(values).toEqual({ from: "a", tags: [], timeout: 60_000, output: "text", verbose: 0 });
});

test("what is replaced may not be given, and is required otherwise", async () => {
  const { problems } = await parse(copy, ["--from", "a", "--masters", "nine", "--dry-run", "url"]);
  expect(problems).toEqual([
    "--masters: cannot be combined with --from",
    "--dry-run: cannot be combined with --from",
    "ARTIFACT_URL: cannot be combined with --from",
  ]);
  expect((await parse(copy, [])).problems).toEqual([
    "--variant: required (oss, enterprise)",
    "ARTIFACT_URL: required",
  ]);
});

test.each([
  ["a.sh --variant oss", false],
  ["--help", true],
  ["a.sh --no-such-option -h", true],
])("whether %p asks for help: %p", async (line, isHelpWanted) => {
  const reader = {
    invocation: { cwd: "/", environment: {} },
    problems: new Problems(""),
    hide: () => {},
  };
  expect((await parseCommandLine(create, line.split(" "), reader)).isHelpWanted).toBe(isHelpWanted);
});

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

test("a missing value is an option's only problem", async () => {
  const problems = new Problems("");
  const reader = { invocation: { cwd: "/", environment: {} }, problems, hide: () => {} };
  await parseCommandLine(create, ["a.sh", "--variant", "oss", "--masters"], reader);
  problems.add("--masters: must be odd");
  expect(problems.all).toEqual([expect.stringContaining("the value is missing")]);
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

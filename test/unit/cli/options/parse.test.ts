import { expect, test } from "bun:test";
import { defineCommand, type Command } from "../../../../src/cli/command.ts";
import { argument, option, wordsArgument } from "../../../../src/cli/options/option.ts";
import { parseCommandLine } from "../../../../src/cli/options/parse.ts";
import { Problems } from "../../../../src/cli/options/problems.ts";
import { count, path, text, value } from "../../../../src/cli/options/value-types.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { create, run } from "./commands.ts";

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
  [
    "--variant oss a.sh ls",
    ["-- COMMAND: required", '"ls": unexpected argument; write -- before the command'],
  ],
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
  const strict = { ...sync, positionals: { n: argument(count(0, 1), { name: "N", summary: "", environment: "N" }) } }; // prettier-ignore
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

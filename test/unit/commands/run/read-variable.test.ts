import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { BadValue } from "../../../../src/cli/options/option.ts";
import {
  isSecretName,
  readVariable,
  readVariableFile,
  secretsIn,
} from "../../../../src/commands/run/read-variable.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

async function read(contents: string): Promise<readonly string[]> {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "own.env"), contents);
  const variables = await readVariableFile("own.env", { cwd: folder.path });
  return variables.map((variable) => `${variable.name}: ${variable.contents}`);
}

// Shows R127.
test("each line of a file is a variable; values are taken as they are", async () => {
  const lines = [
    "\uFEFF# for the tests",
    "A=1",
    "",
    "\t ",
    "URL=https://x/?a=b#c",
    `QUOTED="it's $HOME" `,
    "EMPTY=",
    "A=2",
  ];
  const expected = ["A: 1", "URL: https://x/?a=b#c", `QUOTED: "it's $HOME" `, "EMPTY: ", "A: 2"];
  expect(await read(lines.join("\n"))).toEqual(expected);
  expect(await read(lines.join("\r\n"))).toEqual(expected);
  expect(await read("")).toEqual([]);
});

test("all wrong lines of a file are named, and none is repeated", async () => {
  const error = await failureOf(read("A=1\nexport B=secret\nsecret\nC=sec\0ret\nD='sec ret'\n"));
  expect(error).toBeInstanceOf(BadValue);
  const { message } = error;
  expect(message).toStartWith('own.env, line 2: leave out "export"');
  expect(message).toContain("own.env, line 3: ");
  expect(message).toContain("own.env, line 4: a value cannot contain a NUL byte");
  expect(message).toContain("own.env, line 5: leave out the quotation marks");
  expect(message).not.toContain("sec");
});

test("a single wrong line is enough", async () => {
  expect(await failureOf(read("A=1\nB C=2\n"))).toBeInstanceOf(BadValue);
});

test("a file that can't be read is named", async () => {
  const { message } = await failureOf(readVariableFile("none.env", { cwd: "/nonexistent" }));
  expect(message).toStartWith("cannot read none.env: the file does not exist");
});

test.each(["", "A", "=x", "1A=x", "A B=x", "Ä=x", "A-B=x"])("%j is no variable", (given) => {
  expect(() => readVariable(given)).toThrow("write <KEY>=<VALUE>");
});

test.each([
  "PASSWORD",
  "db_passwd",
  "PASSPHRASE",
  "CLIENT_SECRET",
  "GITHUB_TOKEN",
  "API_KEY",
  "sshKeyFile",
  "CREDENTIALS",
])("%s is the name of a secret", (name) => expect(isSecretName(name)).toBe(true));

test.each(["REGION", "BRANCH", "UX", "WORKSPACE", "PATH", "CI", "LOGIN"])(
  "%s is the name of a setting",
  (name) => expect(isSecretName(name)).toBe(false),
);

test("short values and words that are settings are not masked", () => {
  const values = ["1234", "123", "true", "FALSE", "none", "null", "truest"];
  expect(secretsIn(values.map((contents) => ({ name: "TOKEN", contents })))).toEqual([
    "1234",
    "truest",
  ]);
});

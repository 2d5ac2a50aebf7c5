import { expect, test } from "bun:test";
import { preparedHelpName } from "../../../../src/cli/help/prepared-help-name.ts";

const toFile = { isTTY: (descriptor: number) => descriptor !== 1 };
const toTerminal = { isTTY: (descriptor: number) => descriptor === 1 };

test.each([
  [[], ""],
  [["-h"], ""],
  [["--help"], ""],
  [["--help", "create"], ""],
  [["create", "--help"], "create"],
  [["create", "-h"], "create"],
  [["create"], undefined],
  [["create", "url"], undefined],
  [["create", "url", "--help"], undefined],
  [["create", "-h", "-h"], undefined],
])("into a file, %j ask for the help %p", (argv, name) => {
  expect(preparedHelpName(argv, { env: {}, binding: () => toFile })).toBe(name);
});

test.each([
  ["wide", ""],
  ["80", ""],
  ["79", undefined],
])("with %p columns, the program's prepared help is %p", (columns, name) => {
  expect(preparedHelpName(["--help"], { env: { COLUMNS: columns } })).toBe(name);
});

const unknown = (): never => {
  throw new Error("no such binding");
};

test.each([
  ["on a terminal", () => toTerminal],
  ["on a terminal that the system can't name", () => ({})],
  ["where the system isn't asked", unknown],
  ["in another runtime", undefined],
])("%s, the help of a command is written at its width", (_, binding) => {
  expect(
    preparedHelpName(["create", "--help"], {
      env: {},
      ...(binding === undefined ? {} : { binding }),
    }),
  ).toBe(undefined);
});

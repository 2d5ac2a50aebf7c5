/** What the commands declare: their examples can be typed as they are, and what is secret is hidden. */
import { expect, test } from "bun:test";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import type { Command } from "../../../src/cli/command.ts";
import { parseCommandLine, readWords } from "../../../src/cli/options/parse.ts";
import { Problems } from "../../../src/cli/options/problems.ts";
import { programFor } from "../../../src/commands/program.ts";

const programs = [cloudKind, containerKind, vmKind].map((kind) => programFor(kind));
const examples = programs.flatMap(({ name: program, commands }) =>
  commands.flatMap((command) => command.examples.map(({ words }) => ({ program, command, words }))),
);

/** A line as a shell reads it: quotes group words. */
const wordsOf = (line: string): readonly string[] =>
  [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");

const positionalsOf = ({ positionals }: Command) => Object.values(positionals);

test("each command has an example", () => {
  const without = programs.flatMap(({ commands }) =>
    commands.filter((command) => command.examples.length === 0),
  );
  expect(without.map(({ name }) => name)).toEqual([]);
});

test.each(examples.map(({ program, command, words }) => [`${program} ${words}`, command] as const))(
  "%s is understood",
  async (line, command) => {
    const [, name, ...argv] = wordsOf(line.replace(/ >.*$/, ""));
    expect(name).toBe(command.name);
    const hasRest = positionalsOf(command).some(({ rest }) => rest);
    const read = readWords(Object.values(command.options), argv, hasRest);
    expect(read.problems).toEqual([]);
    const required = positionalsOf(command).filter((positional) => positional.required).length;
    expect(read.positionals.length).toBeGreaterThanOrEqual(required);
    if (!hasRest)
      expect(read.positionals.length).toBeLessThanOrEqual(positionalsOf(command).length);
  },
);

test.each([
  ["run", "--login-pw hush7 true", ["hush7"]],
  ["wait", "--superuser-password hush7", ["hush7"]],
  ["create", "--variant enterprise --wait --superuser-password hush7 a.sh", ["hush7"]],
  ["wait", "--superuser-username admin --timeout 5m", []],
])("%s %s hides what is secret, and nothing else", async (name, line, expected) => {
  for (const program of programs) {
    const command = program.commands.find((each) => each.name === name)!;
    const hidden: string[] = [];
    const reader = {
      invocation: { cwd: "/tmp", environment: {} },
      problems: new Problems(""),
      hide: (secret: string) => void hidden.push(secret),
    };
    await parseCommandLine(command, line.split(" "), reader);
    expect(hidden).toEqual(expected);
  }
});

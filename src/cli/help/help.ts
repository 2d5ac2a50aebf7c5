import type { Command, Program } from "../command.ts";
import { argumentLabel, helpOption, licensesOption, notesOf, optionLabel, usageOf, versionOption } from "./describe.ts";
import { columns, wrap } from "./wrap.ts";

/** The text that the program prints for `--help`, and without arguments. */
export function programHelp(program: Program, width: number): string {
  const commands = program.commands.map((command): [string, string] => [command.name, command.summary]);
  const options = [versionOption, licensesOption, helpOption].map((each): [string, string] => [
    optionLabel(each),
    each.summary,
  ]);
  return paragraphs([
    [`Usage: ${program.name} [OPTIONS] COMMAND [ARGS]...`],
    wrap(program.summary, width),
    ["Commands:", ...columns(commands, width)],
    ["Options:", ...columns(options, width)],
    wrap(`${program.name} COMMAND --help tells all about a command.`, width),
  ]);
}

export function commandHelp(program: Program, command: Command, width: number): string {
  const positionals = Object.values(command.positionals).map((each): [string, string] => [
    argumentLabel(each),
    `${each.summary}${notesOf(each)}`,
  ]);
  const options = [...Object.values(command.options), helpOption].map((each): [string, string] => [
    optionLabel(each),
    `${each.summary}${notesOf(each)}`,
  ]);
  const examples = command.examples.flatMap(({ words, summary }) => [
    ...wrap(summary, width - 4).map((line) => `  # ${line}`),
    `  ${program.name} ${words}`,
  ]);
  return paragraphs([
    [`Usage: ${usageOf(program, command)}`],
    wrap(command.summary, width),
    wrap(command.description, width),
    positionals.length === 0 ? [] : ["Arguments:", ...columns(positionals, width)],
    ["Options:", ...columns(options, width)],
    examples.length === 0 ? [] : ["Examples:", ...examples],
  ]);
}

function paragraphs(parts: readonly (readonly string[])[]): string {
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => `${lines.join("\n")}\n`)
    .join("\n");
}

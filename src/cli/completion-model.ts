import type { Command, Program } from "./command.ts";
import { helpOption, licensesOption, versionOption } from "./describe.ts";
import type { Argument, Option } from "./option.ts";

/** Where candidates for one value come from. */
export type Source =
  | { readonly from: "words"; readonly words: readonly string[] }
  /** Words after the program's name; each line that it prints is a candidate. */
  | { readonly from: "program"; readonly words: readonly string[] }
  | { readonly from: "files" }
  | { readonly from: "directories" }
  | { readonly from: "nowhere" };

export interface CompletedOption {
  /** `--cluster-id` and, where there is one, `-c`. */
  readonly flags: readonly string[];
  readonly summary: string;
  readonly isRepeatable: boolean;
  /** Absent where the option takes no value. */
  readonly value: Source | undefined;
}

export interface CompletedCommand {
  readonly name: string;
  readonly summary: string;
  readonly options: readonly CompletedOption[];
  /** One per positional; the last counts for all that follow when `hasRest`. */
  readonly positionals: readonly Source[];
  /** From the first positional on, words belong to another program. */
  readonly hasRest: boolean;
}

/** What all three shells are told. */
export interface CompletionModel {
  readonly program: string;
  readonly options: readonly CompletedOption[];
  readonly commands: readonly CompletedCommand[];
}

export function completionModel(program: Program): CompletionModel {
  return {
    program: program.name,
    options: [helpOption, versionOption, licensesOption].map(completedOption),
    commands: program.commands.map(completedCommand),
  };
}

function completedCommand(command: Command): CompletedCommand {
  const positionals = Object.values(command.positionals);
  return {
    name: command.name,
    summary: command.summary,
    options: [...Object.values(command.options), helpOption].map(completedOption),
    positionals: positionals.map(sourceOf),
    hasRest: positionals.some((each) => each.rest),
  };
}

function completedOption(option: Option): CompletedOption {
  return {
    flags: [option.flag, ...(option.short === undefined ? [] : [option.short])],
    summary: option.summary,
    isRepeatable: option.repeatable === true,
    value: option.kind === "value" ? sourceOf(option) : undefined,
  };
}

function sourceOf(declared: Option | Argument): Source {
  if (declared.completeWith !== undefined) return { from: "program", words: declared.completeWith };
  if (declared.type.choices !== undefined) return { from: "words", words: declared.type.choices };
  if (declared.type.completes === "directory") return { from: "directories" };
  return declared.type.completes === "file" ? { from: "files" } : { from: "nowhere" };
}

/** One word for a shell that takes single quotes literally (bash, zsh). */
export const shellQuoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`;

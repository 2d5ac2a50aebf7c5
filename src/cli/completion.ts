import type { Command, Program } from "./command.ts";
import { meantWord } from "./habits.ts";
import { helpOption, licensesOption, versionOption } from "./help/help.ts";
import type { Argument, Habits, Option } from "./options/option.ts";
import { givenReplacementOf, type Words, readCommandWords, textsOf } from "./options/parse.ts";
import bash from "./completion.bash" with { type: "text" };
import fish from "./completion.fish" with { type: "text" };
import zsh from "./completion.zsh" with { type: "text" };

interface Offer {
  /** The format is described in completion-command.ts. */
  readonly lines: readonly string[];
  /** A command line of this program. Each line that it prints is also a candidate. */
  readonly command?: readonly string[];
}

/**
 * Replaces the word at the cursor, to find out which option or argument the parser assigns it to.
 * No word of a command line contains a NUL.
 */
const cursor = "\0";

/**
 * `argv` holds the words after the hidden one: the shell's name, then the words up to the cursor.
 * The last word may be empty.
 */
export function completionOffer(program: Program, argv: readonly string[], habits?: Habits): Offer {
  const [shell, ...typed] = argv;
  const [name = "", ...words] = shell === "bash" ? rejoin(typed) : typed;
  if (words.length === 0) {
    const commands = program.commands.map((command) => `${command.name}\t${command.summary}`);
    return {
      lines: [
        "words",
        ...commands,
        ...[helpOption, versionOption, licensesOption].flatMap(flagLines),
      ],
    };
  }
  const command = program.commands.find((each) => each.name === meantWord(program, name, habits));
  return command === undefined ? nothing : wordOffer(program, command, words);
}

const nothing: Offer = { lines: ["words"] };

function wordOffer(program: Program, command: Command, words: readonly string[]): Offer {
  const options = [...Object.values(command.options), helpOption];
  const positionals = Object.values(command.positionals);
  const isForeign = positionals.some((each) => each.rest === "words");
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? "";
  const flag = /^--[^=]+=/.exec(current)?.[0] ?? "";
  const read = readCommandWords(command, [...before, `${flag}${cursor}`]);
  const option = options.find((each) => textsOf(read, each).includes(cursor));
  const offer = (declared: Option | Argument): Offer =>
    begunOffer(declared, current) ?? valueOffer(declared, program, read);
  if (option !== undefined) return offer(option);
  // From the second word on, the words belong to another program.
  const isRest = isForeign && read.positionals.length > 1;
  const index = read.positionals.indexOf(cursor);
  if (index < 0 || isRest) return nothing;
  const isUsable = ([name]: readonly [string, unknown]): boolean =>
    givenReplacementOf(command, name, read) === undefined;
  if (current.startsWith("-") && !before.includes("--")) {
    const usable = Object.entries(command.options).filter(isUsable);
    return optionOffer([...usable.map(([, each]) => each), helpOption], read);
  }
  const positional = Object.entries(command.positionals)[
    positionals.at(-1)?.rest === "values" ? Math.min(index, positionals.length - 1) : index
  ];
  return positional === undefined || !isUsable(positional) ? nothing : offer(positional[1]);
}

function optionOffer(options: readonly Option[], read: Words): Offer {
  const usable = options.filter(
    (option) => option.repeatable === true || textsOf(read, option).length === 0,
  );
  return { lines: ["words", ...usable.flatMap(flagLines)] };
}

function begunOffer({ type, completeWith }: Option | Argument, current: string): Offer | undefined {
  if (completeWith !== undefined) return undefined;
  const begun = (type.offers ?? []).filter((each) => current !== "" && each.startsWith(current));
  return begun.length === 0 ? undefined : { lines: ["words", ...begun] };
}

function valueOffer(
  { completeWith, type, summary }: Option | Argument,
  program: Program,
  read: Words,
): Offer {
  if (completeWith !== undefined)
    return {
      lines: ["words", ...(type.offers ?? [])],
      command: [...completeWith, ...repeatedWords(completeWith, program, read)],
    };
  if (type.choices !== undefined)
    return { lines: ["words", ...type.choices.map((choice) => `${choice}\t${summary}`)] };
  if (type.completes === "directory") return { lines: ["directories"] };
  return type.completes === "file" ? { lines: ["files"] } : nothing;
}

/** Options already typed, such as the region, that the command listing the candidates also accepts. */
function repeatedWords(
  [name]: readonly string[],
  program: Program,
  read: Words,
): readonly string[] {
  const lister = program.commands.find((each) => each.name === name);
  const repeated = Object.values(lister?.options ?? {}).filter((each) => each.isRepeated === true);
  return repeated.flatMap((option) =>
    textsOf(read, option).map((text) => `${option.flag}=${text}`),
  );
}

const flagLines = ({ flag, short, summary }: Option): readonly string[] =>
  [flag, ...(short === undefined ? [] : [short])].map((word) => `${word}\t${summary}`);

/** bash splits words at "=" and ":" and makes these words of their own: `--flag`, `=`, `value`. */
function rejoin(words: readonly string[]): readonly string[] {
  return words.reduce<readonly string[]>((joined, word, index) => {
    const isBreak = /^[=:]+$/.test(word) || /^[=:]+$/.test(words[index - 1] ?? "");
    return isBreak && joined.length > 0
      ? [...joined.slice(0, -1), `${joined.at(-1)}${word}`]
      : [...joined, word];
  }, []);
}

/**
 * Returns the script that completes this program's command lines in a shell. The script passes the
 * words up to the cursor to the program and offers its answer. The first line of the answer is
 * `words`, `files` or `directories`. Each line after `words` is a candidate, optionally followed by
 * a tab and a description. If the word at the cursor is `--flag=value`, the candidates are values,
 * and the script handles the `--flag=` part. The shells source these files, which releases contain,
 * so the program's name stands in them for PROGRAM and NAME. completion.bash also works in bash 3.2
 * (macOS), so it uses no associative arrays, `mapfile`, `compopt` or package of helper functions.
 */
export function completionScript(programName: string, shell: keyof typeof scripts): string {
  return scripts[shell]
    .replaceAll("PROGRAM", programName)
    .replaceAll("NAME", programName.replaceAll(/\W/g, "_"));
}

const scripts = { bash, zsh, fish } as const;

import type { Program } from "./command.ts";
import { helpOption } from "./help/help.ts";
import type { Habits } from "./options/option.ts";

/**
 * Rewrites a command line: `ls` becomes `list`, `help create` becomes `create --help`, and `-c x
 * list` becomes `list -c x`.
 */
export async function withoutHabits(
  program: Program,
  argv: readonly string[],
): Promise<readonly string[]> {
  const habits = await program.habits?.();
  const [first = "", ...rest] = await commandFirst(program, argv, habits);
  const name = meantWord(program, first, habits);
  const [topic] = rest;
  if (name !== helpOption.flag || name === first || topic === undefined) return [name, ...rest];
  return [meantWord(program, topic, habits), name];
}

/** Returns the command that a word stands for, or the word itself. */
export function meantWord({ commands }: Program, word: string, habits: Habits | undefined): string {
  const isCommand = (candidate: string): boolean => commands.some(({ name }) => name === candidate);
  const candidates = habits?.words.get(word) ?? [];
  return isCommand(word) ? word : (candidates.find(isCommand) ?? candidates[0] ?? word);
}

/**
 * Moves options in front of a command behind its name, also options of another command, so that its
 * errors name them. In front of no command they are left out, so that the error names the command.
 */
async function commandFirst(
  program: Program,
  argv: readonly string[],
  habits: Habits | undefined,
): Promise<readonly string[]> {
  if (argv[0]?.startsWith("-") !== true || argv.length === 1) return argv;
  const all = new Map(
    program.commands.flatMap((each) => Object.values(each.options).map((one) => [one.flag, one])),
  );
  const { readWords } = await import("./options/parse.ts");
  const declared = [...all.values()];
  for (const [index, word] of argv.entries()) {
    if (!program.commands.some(({ name }) => name === meantWord(program, word, habits))) continue;
    const leading = argv.slice(0, index);
    const { positionals, problems } = readWords(declared, leading, false, { habits });
    if (positionals.length === 0 && problems.length === 0)
      return [word, ...leading, ...argv.slice(index + 1)];
  }
  const { positionals, problems } = readWords(declared, argv, true, { habits });
  return problems.length === 0 ? [positionals[0] ?? "--"] : argv;
}

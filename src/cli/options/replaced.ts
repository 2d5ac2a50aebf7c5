import type { Command } from "../command.ts";
import type { Option } from "./option.ts";
import { textsOf, type Words } from "./words.ts";

/** Returns the option of this command that replaces the option or argument with this declared name, if there is one. */
export const replacementOf = ({ options }: Pick<Command, "options">, name: string): Option | undefined =>
  Object.values(options).find(({ replaces }) => replaces?.includes(name) === true);

/** Returns the option on this command line that replaces the one with this declared name. */
export function givenReplacementOf(command: Pick<Command, "options">, name: string, words: Words): Option | undefined {
  const replacement = replacementOf(command, name);
  return replacement !== undefined && textsOf(words, replacement).length > 0 ? replacement : undefined;
}

import { ClusterError } from "../../errors.ts";
import { unmarked } from "../../outside-text.ts";
import { type Speaker, neutralSpeaker, spokenBy } from "../../references.ts";
import type { Options } from "./option.ts";

/** Collects all problems of one command line, so that they can be reported together. */
export class Problems {
  readonly #found: string[] = [];
  readonly #rejected = new Set<string>();
  readonly #hint: string;
  readonly #nameFlags: NameFlags;

  /** `hint` names where to get help, such as `cluster-cloud create --help`. */
  constructor(hint: string, nameFlags: NameFlags = (text) => text) {
    this.#hint = hint;
    this.#nameFlags = nameFlags;
  }

  /**
   * A problem is a sentence that begins with its subject: `--masters: 2 is even`. It is left out if
   * it is about an option that was rejected already: an invalid value is not also a missing one.
   */
  add(text: string): void {
    const problem = this.#nameFlags(text);
    const [subject = ""] = problem.split(": ", 1);
    const isConsequence = subject.split(/[^\w-]+/).some((word) => this.#rejected.has(word));
    if (!isConsequence && !this.#found.includes(problem)) this.#found.push(problem);
  }

  /** Notes that all problems of this option's or argument's value are known. */
  reject(label: string): void {
    this.#rejected.add(label);
  }

  get all(): readonly string[] {
    return this.#found.map(unmarked);
  }

  /** Throws one `bad-usage` error that lists every problem. `facts.problems` also holds them. */
  throwIfAny(): void {
    const [first, ...others] = this.#found;
    if (first === undefined) return;
    const message =
      others.length === 0 ? first : this.#found.map((problem) => `\n  ${problem}`).join("");
    throw new ClusterError(
      "bad-usage",
      others.length === 0 ? message : `${this.#found.length} problems:${message}`,
      {
        hint: `See ${this.#hint}`,
        facts: { problems: this.#found },
      },
    );
  }
}

/**
 * Gives the references of a text (references.ts) the words of the command line: `--timeout`,
 * `--agents 0`, `cluster-cloud list`.
 */
export type NameFlags = (text: string) => string;

/** Names options only, such as those of an option's own summary. */
export function namingFlags(flagsByName: FlagsByName): NameFlags {
  const speaker = optionSpeaker(flagsByName);
  return (text) => spokenBy(speaker, text);
}

type FlagsByName = () => readonly (readonly [name: string, flag: string])[];

function optionSpeaker(flagsByName: FlagsByName): Speaker {
  const known: { flags?: ReadonlyMap<string, string> } = {};
  return {
    ...neutralSpeaker,
    option: (name, value) => {
      known.flags ??= new Map(flagsByName());
      const flag = known.flags.get(name);
      if (flag === undefined) return neutralSpeaker.option(name, value);
      return value === undefined ? flag : `${flag} ${value}`;
    },
  };
}

interface NamedProgram {
  readonly name: string;
  readonly commands: readonly { readonly name: string; readonly options: Options }[];
}

/** An instruction to run a command repeats those of the `given` options that lead to the same cluster. */
export function flagNames(
  { name: program, commands }: NamedProgram,
  given: Readonly<Record<string, unknown>> = {},
): NameFlags {
  const speaker: Speaker = {
    ...optionSpeaker(() =>
      commands.flatMap(({ options }) =>
        Object.entries(options).map(([name, { flag }]) => [name, flag] as const),
      ),
    ),
    command: (words, verb) => {
      const command = commands.find(({ name }) => name === words.split(" ", 1)[0]);
      if (command === undefined) return neutralSpeaker.command(words, verb);
      const line = `${program} ${words}`;
      return verb === undefined ? line : `${verb} ${line}${repeatedWords(command.options, given)}`;
    },
  };
  return (text) => spokenBy(speaker, text);
}

const repeatedWords = (options: Options, given: Readonly<Record<string, unknown>>): string =>
  Object.entries(options)
    .filter(
      ([name, option]) => option.isRepeated && ![undefined, option.default].includes(given[name]),
    )
    .map(([name, { flag }]) => ` ${flag} ${String(given[name])}`)
    .join("");

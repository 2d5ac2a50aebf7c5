/**
 * Messages name options and commands, which each speaker calls otherwise: `--timeout` on the
 * command line is `timeoutMs` in the library. So below both a message holds a reference, which the
 * speaker replaces with its own words. Elsewhere, as in facts and events, a reference has neutral
 * words.
 *
 * References stand between characters that Unicode reserves for use inside a program, like the
 * marks of outside-text.ts.
 */
const begin = "\uFDD2";
const end = "\uFDD3";
const separator = "\uFDD4";
const reference = /\uFDD2([^\uFDD2\uFDD3]*)\uFDD3/g;

/** The words of the command line, the library, or nobody in particular. */
export interface Speaker {
  option(name: string, value: string | undefined): string;
  /**
   * `words` are those after the program's name, such as "node start master_0"; `verb` is absent
   * where the command is only mentioned.
   */
  command(words: string, verb: Verb | undefined): string;
  /** A sentence about the option that prints more. */
  detail(level: string, what: string): string;
}

type Verb = "Run" | "run";

/** Refers to an option by the name under which commands declare it: `Pass ${optionName("agents", 0)}`. */
export const optionName = (name: string, value?: string | number): string =>
  refer("option", name, value === undefined ? "" : String(value));

/** Mentions a command of the program: `was not written by ${commandName("export")}`. */
export const commandName = (words: string): string => refer("command", words, "");

/**
 * Begins an instruction: `${runCommand("inspect")} to see its nodes.` The program adds the options
 * that lead to the same cluster.
 */
export const runCommand = (words: string, verb: Verb = "Run"): string =>
  refer("command", words, verb);

/** The sentence, at the end of a hint, that leads to more output: `moreDetail("-vv", "every request")`. */
export const moreDetail = (level: "-v" | "-vv" | "-vvv", what: string): string =>
  refer("detail", level, what);

const refer = (kind: keyof Speaker, first: string, second: string): string =>
  [begin, kind, separator, first, separator, second, end].join("");

/** Replaces the references of a text with this speaker's words. */
export function spokenBy(speaker: Speaker, text: string): string {
  if (!text.includes(begin)) return text;
  return text.replaceAll(reference, (_, parts: string) => {
    const [kind = "", first = "", second = ""] = parts.split(separator);
    if (kind === "option") return speaker.option(first, second === "" ? undefined : second);
    if (kind === "detail") return speaker.detail(first, second);
    return speaker.command(first, second === "" ? undefined : (second as Verb));
  });
}

/** The words for facts, events and whatever else has no speaker. */
export const neutralSpeaker: Speaker = {
  option: (name, value) => `\`${value === undefined ? name : `${name} ${value}`}\``,
  command: (words, verb) =>
    `${verb === undefined ? "" : `${verb} `}the ${words.includes(" ") ? `command "${words}"` : `${words} command`}`,
  detail: (level, what) => `Pass ${level} to see ${what}.`,
};

export const neutral = (text: string): string => spokenBy(neutralSpeaker, text);

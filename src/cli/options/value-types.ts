import { type Rule, inDigits, refusal, wholeNumber, wordOf } from "../../model/rule.ts";
import { durationRule } from "../../system/amounts.ts";
import {
  BadValue,
  type Invocation,
  type Option,
  type ValueType,
  counted,
  option,
} from "./option.ts";

export const text: ValueType<string> = { parse: refuseEmpty };

export const anyText: ValueType<string> = { parse: (given) => given };

/** A path, resolved against the working directory. Does not check whether anything exists there. */
export const path: ValueType<string> = { parse: parsePath, completes: "file" };

export const directoryPath: ValueType<string> = { parse: parsePath, completes: "directory" };

/** `15m`, `90s`, `1h30m`: milliseconds. */
export const duration: ValueType<number> = { parse: parseDuration };

/** A text that the rule accepts. */
export const byRule = <Single>(rule: Rule<Single>): ValueType<Single> => ({
  ...(rule.choices !== undefined && { choices: rule.choices }),
  parse: (given) => readBy(rule, given),
});

/** Throws `BadValue`. */
export function readBy<Single>(rule: Rule<Single>, given: string): Single {
  const found = rule.read(given);
  if (found === undefined) throw new BadValue(refusal(rule, given));
  return found;
}

export const count = (least: number, most: number): ValueType<number> =>
  byRule(inDigits(wholeNumber(least, most)));

export const choice = <const Word extends string>(choices: readonly Word[]): ValueType<Word> =>
  byRule(wordOf(choices));

/**
 * A custom value type. `parse` throws `BadValue`. It may be asynchronous and read files, so that
 * the value is, for example, the parsed document rather than its path.
 */
export function value<Single>(
  parse: (given: string, invocation: Invocation) => Single | Promise<Single>,
  completes?: "file" | "directory",
): ValueType<Single> {
  return completes === undefined ? { parse } : { parse, completes };
}

/** Throws `BadValue`. */
export function refuseEmpty(given: string): string {
  if (given === "") throw new BadValue("the value is empty");
  return given;
}

export async function parsePath(
  given: string,
  invocation: Pick<Invocation, "cwd">,
): Promise<string> {
  // Loaded late: a start without paths needs none of this.
  const paths = await import("node:path");
  return paths.resolve(invocation.cwd, refuseEmpty(given));
}

/** The path of a file that the command writes. Throws `BadValue`. */
export async function parseNewFile(
  given: string,
  invocation: Pick<Invocation, "cwd">,
): Promise<string> {
  if (given.endsWith("/")) throw new BadValue(`${given} is a folder: name a file in it`);
  return parsePath(given, invocation);
}

export const newFile: ValueType<string> = { parse: parseNewFile, completes: "file" };

/** cli/main reads this option to decide how much to print. Declare it under the name `verbose`. */
export const verbose = counted({
  flag: "--verbose",
  short: "-v",
  summary:
    "Print more: -v adds steps and timings, -vv API calls and remote commands, -vvv remote output",
});

/** cli/main reads this option to decide the format of results and errors. Declare it under the name `output`. */
export function outputFormat<const Format extends string>(
  formats: readonly ["text", ...Format[]],
): Option<"text" | Format> {
  return option(choice<"text" | Format>(formats), {
    flag: "--output",
    placeholder: `<${formats.join("|")}>`,
    summary: "Format of the result on stdout",
    default: "text",
  });
}

/** Converts `15m`, `90s`, `1h30m` or `250ms` to milliseconds, more than zero. Throws `BadValue`. */
export function parseDuration(given: string): number {
  const ms = readBy(durationRule, given);
  // A timer of the runtime holds 31 bits, which is 24 days. No wait needs more.
  if (ms < 1 || ms > 2 ** 31 - 1)
    throw new BadValue(`${JSON.stringify(given)} is not between 1ms and 24d`);
  return ms;
}

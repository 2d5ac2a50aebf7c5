import { quoted } from "../../errors.ts";
import { readDurationMs } from "../../system/amounts.ts";
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

export function count(range: {
  readonly minimum: number;
  readonly maximum: number;
}): ValueType<number> {
  return {
    parse: (given) => {
      const number = /^[0-9]{1,15}$/.test(given) ? Number(given) : Number.NaN;
      if (number >= range.minimum && number <= range.maximum) return number;
      throw new BadValue(
        `${quoted(given)} is not a whole number from ${range.minimum} to ${range.maximum}`,
      );
    },
  };
}

export function choice<const Word extends string>(choices: readonly Word[]): ValueType<Word> {
  return {
    choices,
    parse: (given) => {
      const chosen = choices.find((word) => word === given);
      if (chosen !== undefined) return chosen;
      throw new BadValue(`${quoted(given)} is not one of ${choices.join(", ")}`);
    },
  };
}

/**
 * A custom value type. `parse` throws `BadValue`. It may be asynchronous and read files, so that the value is, for example, the parsed document
 * rather than its path.
 */
export function value<Single>(
  parse: (given: string, invocation: Invocation) => Single | Promise<Single>,
  completes?: "file" | "directory",
): ValueType<Single> {
  return completes === undefined ? { parse } : { parse, completes };
}

function refuseEmpty(given: string): string {
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
  const ms = readDurationMs(given);
  if (ms === undefined) {
    throw new BadValue(`${JSON.stringify(given)} is not a duration such as 90s, 15m or 1h30m`);
  }
  // A timer of the runtime holds 31 bits, which is 24 days. No wait needs more.
  if (ms < 1 || ms > 2 ** 31 - 1)
    throw new BadValue(`${JSON.stringify(given)} is not between 1ms and 24d`);
  return ms;
}

/** Chaos in one text, such as `seed=7,every=30s,kinds=partition,process,targets=one,unit=etcd`. */
import { BadValue } from "../../cli/options/option.ts";
import { parseDuration, readBy, refuseEmpty } from "../../cli/options/value-types.ts";
import {
  type ChaosOptions,
  chaosProblems,
  drawnOptions,
  chaosTargets,
  usualChaos,
} from "../../cluster/faults/chaos-plan.ts";
import { inDigits, wholeNumber, wordOf } from "../../model/rule.ts";
import { durationRule } from "../../system/amounts.ts";
import type { FaultOption } from "../../platform/faults/fault-kind.ts";
import { faultKinds, faultRows } from "../../platform/faults/fault-kinds.ts";

export const newSeed = (): number => crypto.getRandomValues(new Uint32Array(1))[0] ?? 0;

const kindOptions: readonly (readonly [name: string, option: FaultOption])[] = faultKinds.flatMap(
  (kind) => Object.entries(faultRows[kind].options).filter(([name]) => !drawnOptions.has(name)),
);

const listOf =
  <Word extends string>(words: readonly Word[]) =>
  (text: string): readonly Word[] =>
    text.split(",").map((each) => readBy(wordOf(words), each));

export const parseKinds = listOf(faultKinds);
export const parseTargets = listOf(chaosTargets);

/** The ranges of these are checked with the other options. */
const anyNumber = { ...inDigits(wholeNumber(0, 9_999_999_999)), what: "a whole number" };

export const parseEvery = (text: string): number => readBy(durationRule, text);

const parseNumber = (text: string): number => readBy(anyNumber, text);

export const parseNumbers = (text: string): readonly number[] => text.split(",").map(parseNumber);

/** The option's name and the reader of its text, by its key. */
const keys: ReadonlyMap<string, readonly [name: string, read: (text: string) => unknown]> = new Map(
  [
    ["seed", ["seed", parseNumber]],
    ["every", ["everyMs", parseEvery]],
    ["kinds", ["kinds", parseKinds]],
    ["targets", ["targets", parseTargets]],
    ["recover", ["recoverMs", parseDuration]],
    ["only", ["only", parseNumbers]],
    ...kindOptions.map(
      ([name, option]) =>
        [option.flag.slice(2), [name, (text: string) => readOption(option, text)]] as const,
    ),
  ],
);

function readOption({ type, rule }: FaultOption, text: string): unknown {
  if (type === "switch") return text === "" || text === "true";
  if (type === "nodes") return text.split(",");
  return rule === undefined ? refuseEmpty(text) : readBy(rule, text);
}

/** Throws `BadValue` with every problem. Without a seed, one is drawn. */
export function parseChaos(given: string): ChaosOptions {
  const values: Record<string, unknown> = { seed: newSeed(), ...usualChaos };
  const pairs = pairsOf(given);
  for (const [place, [key, text]] of pairs.entries()) {
    const [name = "", read] = keys.get(readBy(wordOf([...keys.keys()]), key)) ?? [];
    if (pairs.findIndex(([each]) => each === key) < place)
      throw new BadValue(`${key}: given more than once`);
    try {
      values[name] = read?.(text);
    } catch (error) {
      if (!(error instanceof BadValue)) throw error;
      throw new BadValue(...error.problems.map((problem) => `${key}: ${problem}`));
    }
  }
  const options = values as unknown as ChaosOptions;
  const problems = chaosProblems(options);
  if (problems.length > 0) throw new BadValue(...problems);
  return options;
}

/** A part without a key continues the list before it. */
function pairsOf(given: string): readonly (readonly [key: string, text: string])[] {
  const pairs: [string, string][] = [];
  for (const part of given.split(",")) {
    const [, key, text = ""] = /^([a-z-]+)(?:=(.*))?$/s.exec(part) ?? [];
    const previous = pairs.at(-1);
    const isContinued = previous !== undefined && (key === undefined || !part.includes("="));
    if (isContinued && !keys.has(part)) previous[1] += `,${part}`;
    else pairs.push([key ?? part, text]);
  }
  return pairs;
}

/** Keys and texts of these options, without those that are absent. */
export const chaosPairs = (
  options: ChaosOptions,
): readonly (readonly [key: string, text: string])[] =>
  [...keys].flatMap(([key, [name]]) => {
    const text = valueText(
      name,
      (options as unknown as Readonly<Record<string, OptionValue>>)[name],
    );
    return text === undefined ? [] : [[key, text] as const];
  });

/** Returns what `parseChaos` reads as these options. */
export const chaosText = (options: ChaosOptions): string =>
  chaosPairs(options)
    .map(([key, text]) => `${key}=${text}`)
    .join(",");

type OptionValue = string | number | boolean | readonly string[] | undefined;

/** Returns what the command line reads as this value. */
export function valueText(name: string, value: OptionValue): string | undefined {
  if (value === undefined || value === false) return undefined;
  if (typeof value === "object") return value.length === 0 ? undefined : value.join(",");
  const suffix = name.endsWith("Ms")
    ? "ms"
    : (kindOptions.find(([each]) => each === name)?.[1].suffix ?? "");
  return `${String(value)}${suffix}`.replace(/000ms$/, "s");
}

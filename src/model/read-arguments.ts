import { quoted } from "../errors.ts";
import { badUsage } from "./checked.ts";
import { isMapping } from "./reader.ts";
import { type Rule, refusal, wordOf } from "./rule.ts";

/**
 * Checks the arguments of the library at run time. TypeScript checks the same, but callers may use
 * JavaScript, and a creation must not begin with a value that no command could read back.
 */

/** Returns what is wrong with a value, as one sentence without the argument's name, or `undefined`. */
type ArgumentCheck = (given: unknown) => string | undefined;

interface Argument {
  readonly check: ArgumentCheck;
  readonly isRequired: boolean;
}

/** The check of each property of an object. The type requires one for every property. */
export type Shape<Given> = { readonly [Name in keyof Given]-?: Argument };

export const required = (check: ArgumentCheck): Argument => ({ check, isRequired: true });
export const optional = (check: ArgumentCheck): Argument => ({ check, isRequired: false });

/**
 * Returns a copy with the known properties, so that later changes to the caller's object have no
 * effect. Throws `bad-usage` with every problem: those of the shape, and those that `problemsOf`
 * finds in values of the right shape.
 */
export function readArguments<Given extends object>(
  given: Given,
  shape: Shape<Given>,
  problemsOf: (values: Given) => readonly string[] = () => [],
): Given {
  const problems = shapeProblems(given, shape);
  if (problems.length > 0) throw badUsage(problems);
  const values = Object.fromEntries(
    Object.keys(shape).flatMap((name) => {
      const value = given[name as keyof Given];
      return value === undefined ? [] : [[name, value]];
    }),
  ) as Given;
  const more = problemsOf(values);
  if (more.length > 0) throw badUsage(more);
  return values;
}

function shapeProblems(
  given: unknown,
  shape: Readonly<Record<string, Argument>>,
): readonly string[] {
  if (!isMapping(given)) return [`${shown(given)} is not an object with options`];
  const unknown = Object.keys(given).filter(
    (name) => !Object.hasOwn(shape, name) && given[name] !== undefined,
  );
  return [
    ...unknown.map((name) => refusal(wordOf(Object.keys(shape)), name)),
    ...Object.entries(shape).flatMap(([name, { check, isRequired }]) => {
      const value = given[name];
      if (value === undefined) return isRequired ? [`\`${name}\`: required`] : [];
      const problem = check(value);
      return problem === undefined ? [] : [`\`${name}\`: ${problem}`];
    }),
  ];
}

/** Shows texts and numbers. Of other values it names only the type, because they may contain a secret. */
function shown(given: unknown): string {
  if (typeof given === "string") return quoted(given);
  if (typeof given === "number" || typeof given === "boolean" || given === null)
    return String(given);
  return Array.isArray(given) ? "an array" : `a value of the type ${typeof given}`;
}

/** Doesn't show the value, which may be a secret of the wrong type. */
const wrongType = (given: unknown, expected: string): string =>
  `must be ${expected}, not ${given === null ? "null" : Array.isArray(given) ? "an array" : `of the type ${typeof given}`}`;

/** A text that can be an argument of a command, a path or a name. */
export const text: ArgumentCheck = (given) => {
  if (typeof given !== "string") return wrongType(given, "a string");
  if (given === "") return "the value is empty";
  return given.includes("\0") ? "the value contains a null character" : undefined;
};

export const anyText: ArgumentCheck = (given) =>
  typeof given === "string" ? undefined : wrongType(given, "a string");

export const textOrNumber: ArgumentCheck = (given) =>
  typeof given === "number" && Number.isFinite(given) ? undefined : anyText(given);

export const textOrBytes: ArgumentCheck = (given) =>
  typeof given === "string" || given instanceof Uint8Array
    ? undefined
    : wrongType(given, "a string or a Uint8Array");

export const flag: ArgumentCheck = (given) =>
  typeof given === "boolean" ? undefined : wrongType(given, "true or false");

export const callback: ArgumentCheck = (given) =>
  typeof given === "function" ? undefined : wrongType(given, "a function");

export const signal: ArgumentCheck = (given) =>
  given instanceof AbortSignal ? undefined : wrongType(given, "an AbortSignal");

/** A timer of the runtime holds 31 bits. */
const longestMs = 2 ** 31 - 1;

export const milliseconds: ArgumentCheck = (given) => {
  if (typeof given !== "number") return wrongType(given, "a number of milliseconds");
  return given >= 1 && given <= longestMs
    ? undefined
    : `${given} is not between 1 and ${longestMs} milliseconds`;
};

export const byRule =
  (rule: Rule<unknown>): ArgumentCheck =>
  (given) => {
    if (rule.read(given) !== undefined) return undefined;
    return typeof given === "string" ? refusal(rule, given) : `${shown(given)} is not ${rule.what}`;
  };

/** A text by a rule. */
export const textBy =
  (rule: Rule<string>): ArgumentCheck =>
  (given) =>
    text(given) ?? byRule(rule)(given);

export const textThat =
  (problemOf: (given: string) => string | undefined): ArgumentCheck =>
  (given) =>
    text(given) ?? problemOf(String(given));

export const listOf =
  (check: ArgumentCheck, { minimum = 0 }: { readonly minimum?: number } = {}): ArgumentCheck =>
  (given) => {
    if (!Array.isArray(given)) return wrongType(given, "an array");
    if (given.length < minimum) return "the array is empty";
    // Array.from also visits the holes of a sparse array.
    return firstProblem(
      Array.from(given, (value: unknown, index) => [`element ${index}`, check(value)]),
    );
  };

export const textOrTexts: ArgumentCheck = (given) =>
  Array.isArray(given) ? listOf(text, { minimum: 1 })(given) : text(given);

export const mappingOf =
  (check: ArgumentCheck, checkName: ArgumentCheck = () => undefined): ArgumentCheck =>
  (given) => {
    if (!isMapping(given)) return wrongType(given, "an object");
    const entries = Object.entries(given);
    return firstProblem(
      entries.map(([name, value]) => [quoted(name), checkName(name) ?? check(value)]),
    );
  };

export const objectWith =
  (shape: Readonly<Record<string, Argument>>): ArgumentCheck =>
  (given) =>
    shapeProblems(given, shape)[0];

export const anything: ArgumentCheck = () => undefined;

/** Data that YAML and JSON can hold, to any depth. */
export const plainData: ArgumentCheck = (given) => dataProblem(given, []);

function dataProblem(given: unknown, outer: readonly unknown[]): string | undefined {
  const isOther = ["bigint", "function", "symbol"].includes(typeof given) || !isOrdinary(given);
  if (isOther) return wrongType(given, "plain data");
  if (typeof given === "number" && !Number.isFinite(given))
    return `${given} is not a number that JSON can hold`;
  if (typeof given !== "object" || given === null) return undefined;
  if (outer.includes(given)) return "the value contains itself";
  const entries = Object.entries(given);
  return firstProblem(
    entries.map(([name, value]) => [quoted(name), dataProblem(value, [...outer, given])]),
  );
}

/**
 * Dates, sets and the like lose their contents in JSON. Objects of another realm, as in some test
 * runners, are ordinary.
 */
function isOrdinary(given: unknown): boolean {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return true;
  const prototype: unknown = Object.getPrototypeOf(given);
  return prototype === null || Object.getPrototypeOf(prototype) === null;
}

function firstProblem(
  found: readonly (readonly [subject: string, problem: string | undefined])[],
): string | undefined {
  const [first] = found.filter(([, problem]) => problem !== undefined);
  return first === undefined ? undefined : `${first[0]}: ${first[1]}`;
}

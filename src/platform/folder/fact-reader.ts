import { quoted } from "../../errors.ts";
import { type Reader, isMapping, refined, string } from "../../model/reader.ts";
import { type Rule, didYouMean, nearest, refusal } from "../../model/rule.ts";
import { outside } from "../../outside-text.ts";
import { isPlainLine } from "../../system/printable.ts";

/**
 * Reads values of unknown shape, and collects every problem as `key: what is wrong`. After a
 * problem, a function returns an empty value, which the caller must not use.
 */
export interface FactReader {
  readonly problems: string[];
}

const report = ({ problems }: FactReader, key: string, text: string): undefined =>
  void problems.push(key === "" ? text : `${key}: ${text}`);

/** Reads a mapping with no other keys than these. A missing one is empty. */
export function readMapping(
  reader: FactReader,
  key: string,
  found: unknown,
  keys: readonly string[],
): Readonly<Record<string, unknown>> {
  if (found === undefined) return {};
  if (!isMapping(found)) {
    report(reader, key, `must be a mapping (key: value), not ${described(found)}`);
    return {};
  }
  for (const name of Object.keys(found).filter((each) => !keys.includes(each))) {
    const advice = didYouMean(nearest(name, keys));
    report(reader, key, `unknown key ${quoted(name)}; the keys are ${keys.join(", ")}${advice}`);
  }
  return found;
}

export function readFact<Value>(
  reader: FactReader,
  key: string,
  found: unknown,
  rule: Rule<Value>,
): Value | undefined {
  if (found === undefined) return undefined;
  if (typeof found === "string")
    return rule.read(found) ?? report(reader, key, refusal(rule, found));
  const isWord =
    typeof found === "number" || typeof found === "bigint" || typeof found === "boolean";
  const advice = isWord ? "; put it in quotes" : "";
  return report(reader, key, `must be a text, not ${described(found)}${advice}`);
}

export function readRequired(
  reader: FactReader,
  key: string,
  found: unknown,
  rules: Rule<string>,
): string {
  if (found === undefined) report(reader, key, "is missing");
  return readFact(reader, key, found, rules) ?? "";
}

export function readNumber(
  reader: FactReader,
  key: string,
  found: unknown,
  { read, what }: Rule<number>,
): number | undefined {
  if (found === undefined) return undefined;
  return read(found) ?? report(reader, key, `${described(found)} is not ${what}`);
}

/** Reads an optional list without repetitions. */
export function readList<Entry>(
  reader: FactReader,
  key: string,
  found: unknown,
  rules: Rule<Entry> & { readonly most: number },
): readonly Entry[] {
  if (found === undefined) return [];
  if (!Array.isArray(found)) {
    report(reader, key, `must be a list, not ${described(found)}`);
    return [];
  }
  if (found.length > rules.most) {
    report(reader, key, `has ${found.length} entries; at most ${rules.most} are allowed`);
    return [];
  }
  const entries: readonly unknown[] = found;
  const repeated = new Set(entries.filter((entry, index) => entries.indexOf(entry) !== index));
  for (const entry of new Set(entries)) {
    if (rules.read(entry) === undefined)
      report(reader, key, `${described(entry)} is not ${rules.what}`);
    else if (repeated.has(entry)) report(reader, key, `${described(entry)} is listed twice`);
  }
  return entries.flatMap((entry) => rules.read(entry) ?? []);
}

/** A printable line of at most this many characters, without spaces at its ends. */
export const plainLineOf = (longest: number): Reader<string> =>
  refined(string, (found) =>
    found !== "" && found.length <= longest && found.trim() === found && isPlainLine(found)
      ? found
      : undefined,
  );

const longestNumber = 20;

/** A value as a problem names it. */
function described(found: unknown): string {
  if (typeof found === "string") return quoted(found);
  if (typeof found === "number" || typeof found === "bigint" || typeof found === "boolean") {
    const text = String(found);
    return outside(text.length > longestNumber ? `${text.slice(0, longestNumber)}…` : text);
  }
  if (found === null || found === undefined) return "nothing";
  if (Array.isArray(found)) return "a list";
  return "a mapping";
}

/** Reads the test cases of a JUnit file with their times. It is outside text: nothing in it is an error. */
import { plainLine } from "../../system/printable.ts";

export interface TestCase {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly hasFailed: boolean;
}

const mostCases = 2000;
const tags = /<(testsuite|testcase|failure|error|skipped)\b([^<>]{0,2000})>/g;
const entities: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  amp: "&",
};

/**
 * Returns the cases one after the other, because the format has only their durations. They begin at the suite's time, or at `startMs` if that is not
 * between it and `endMs`.
 */
export function readCases(
  xml: string,
  { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
): readonly TestCase[] {
  const cases: { -readonly [Key in keyof TestCase]: TestCase[Key] }[] = [];
  let nextMs = startMs;
  for (const [, tag, given = ""] of xml.matchAll(tags)) {
    if (cases.length >= mostCases) break;
    const own = attributesOf(given);
    const last = cases.at(-1);
    if (tag === "testsuite") {
      const ms = Date.parse(
        /[Z+]|-\d\d:\d\d$/.test(own.get("timestamp") ?? "")
          ? (own.get("timestamp") ?? "")
          : `${own.get("timestamp") ?? ""}Z`,
      );
      if (ms >= startMs && ms <= endMs) nextMs = ms;
    } else if (tag === "testcase") {
      const seconds = Number(own.get("time") ?? 0);
      const ms = seconds >= 0 && seconds < 1e6 ? seconds * 1000 : 0;
      const name = plainLine(
        [own.get("classname"), own.get("name")].filter(Boolean).join(" "),
        200,
      );
      cases.push({ name, startMs: nextMs, endMs: nextMs + ms, hasFailed: false });
      nextMs += ms;
    } else if (last !== undefined && tag !== "skipped") last.hasFailed = true;
  }
  return cases;
}

const attributesOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    [...text.matchAll(/([a-z]{1,20})="([^"]{0,1000})"/g)].map(([, name = "", value = ""]) => [
      name,
      value.replaceAll(/&(lt|gt|quot|apos|amp);/g, (_, entity: string) => entities[entity] ?? ""),
    ]),
  );

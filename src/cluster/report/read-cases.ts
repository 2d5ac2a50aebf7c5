/** Reads the test cases of a JUnit file with their times. It is outside text: nothing in it is an error. */
import { plainLine } from "../../system/printable.ts";

export interface TestCase {
  readonly name: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly hasFailed: boolean;
  readonly isSkipped: boolean;
  /** What the test says about that; "" if it says nothing. */
  readonly failure: string;
}

/** Of one file. The timeline has a place for fewer, and says so. */
export const mostCases = 20_000;
const longestTag = 20_000;
/** A message may be longer than a tag may be here, and `$` is where it is cut. */
const tag =
  /^<(testsuite|\/?testcase|failure|error|skipped)\b((?:[^<>"']|"[^"<]*(?:"|$)|'[^'<]*(?:'|$))*)(?:>|$)/;
const hidden = [
  ["<!--", "-->"],
  ["<![CDATA[", "]]>"],
] as const;
const entities: Readonly<Record<string, string>> = {
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  amp: "&",
};

/**
 * Returns the cases one after the other, because the format has only their durations. They begin at
 * the suite's time, or at `startMs` if that is not between it and `endMs`. A failure of a suite
 * outside its cases counts as a case.
 */
export function readCases(
  xml: string,
  { startMs, endMs }: { readonly startMs: number; readonly endMs: number },
): readonly TestCase[] {
  const cases: { -readonly [Key in keyof TestCase]: TestCase[Key] }[] = [];
  const add = (own: ReadonlyMap<string, string>, ms: number): (typeof cases)[number] => {
    const name = plainLine([own.get("classname"), own.get("name")].filter(Boolean).join(" "), 200);
    const outcome = { hasFailed: false, isSkipped: false, failure: "" };
    const added = { name, startMs: nextMs, endMs: nextMs + ms, ...outcome };
    cases.push(added);
    nextMs += ms;
    return added;
  };
  let nextMs = startMs;
  let suite: ReadonlyMap<string, string> = new Map();
  /** The case whose tag has not been closed. */
  let open: (typeof cases)[number] | undefined;
  for (const { name: tagName, given } of tagsOf(xml)) {
    if (cases.length >= mostCases) break;
    const own = attributesOf(given);
    if (tagName === "testsuite") {
      suite = own;
      const ms = Date.parse(
        /[Z+]|-\d\d:\d\d$/.test(own.get("timestamp") ?? "")
          ? (own.get("timestamp") ?? "")
          : `${own.get("timestamp") ?? ""}Z`,
      );
      if (ms >= startMs && ms <= endMs) nextMs = ms;
    } else if (tagName === "testcase") {
      const seconds = Number(own.get("time") ?? 0);
      const ms = seconds >= 0 && seconds < 1e6 ? seconds * 1000 : 0;
      const added = add(own, ms);
      open = given.endsWith("/") ? undefined : added;
    } else if (tagName === "/testcase") open = undefined;
    else if (tagName === "skipped") {
      if (open !== undefined) open.isSkipped = true;
    } else {
      const failed = open ?? add(suite, 0);
      failed.hasFailed = true;
      failed.failure ||= plainLine(own.get("message") ?? "", 200);
    }
  }
  return cases;
}

/** Passes over comments and quoted output, which may hold anything. Takes linear time. */
function* tagsOf(xml: string): Generator<{ readonly name: string; readonly given: string }> {
  for (let at = xml.indexOf("<"); at >= 0; at = xml.indexOf("<", at + 1)) {
    const [, end] = hidden.find(([start]) => xml.startsWith(start, at)) ?? [];
    if (end !== undefined) {
      at = xml.indexOf(end, at);
      if (at < 0) return;
      continue;
    }
    const [, name, given = ""] = tag.exec(xml.slice(at, at + longestTag)) ?? [];
    if (name !== undefined) yield { name, given };
  }
}

const attributesOf = (text: string): ReadonlyMap<string, string> =>
  new Map(
    [...text.matchAll(/([a-z]{1,20})=("[^"]*(?:"|$)|'[^']*(?:'|$))/g)].map(
      ([, name = "", value = ""]) => [
        name,
        value
          .slice(1, -1)
          .replaceAll(
            /&(?:(lt|gt|quot|apos|amp)|#(\d{1,7})|#x([0-9a-fA-F]{1,6}));/g,
            (whole, entity: string | undefined, decimal: string, hex: string) =>
              entity === undefined
                ? characterOf(decimal === undefined ? parseInt(hex, 16) : Number(decimal), whole)
                : (entities[entity] ?? ""),
          ),
      ],
    ),
  );

const characterOf = (code: number, otherwise: string): string =>
  code <= 0x10_ff_ff ? String.fromCodePoint(code) : otherwise;

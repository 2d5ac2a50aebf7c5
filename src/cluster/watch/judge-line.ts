/** What a line of a node's journal means while a command runs. */
import { expressionOf, matchesLine } from "../../model/line-pattern.ts";
import type { Noticeable } from "../../platform/faults/fault-kind.ts";
import type { PlatformFacts } from "../../platform/folder/platform-file.ts";
import type { LogLine } from "../logs/log-lines.ts";
import { signs } from "../report/signs.ts";

export type Patterns = Pick<PlatformFacts["logs"], "errors" | "allowed">;

export interface Verdict {
  readonly kind: Noticeable;
  readonly what: string;
  /** Further lines of this kind on the same node with the same subject say nothing new. */
  readonly subject: string;
}

/** Programs whose lines quote commands, ours among them, or are about logins, such as ours that was given up. */
const notOfPlatform: ReadonlySet<string> = new Set([
  "sudo",
  "cluster-e2e",
  "sshd",
  "sshd-session",
  "sshd-auth",
]);
/** Units that this program starts on nodes. */
const own = /^cluster-e2e/;

/** Returns undefined for a line that means nothing, or that the platform allows. Takes linear time. */
export function judgeLine(
  { unit, text }: Pick<LogLine, "unit" | "text">,
  { errors, allowed }: Patterns,
): Verdict | undefined {
  if (allowed.some((pattern) => matchesLine(pattern, `${unit}: ${text}`))) return undefined;
  const sign = signs.find(({ by, shape }) => by?.has(unit) === true && shape.test(text));
  if (sign?.id === "failed-unit") {
    const [subject = ""] = text.replace(/^Unit /, "").split(/: | entered /, 1);
    return own.test(subject) ? undefined : { kind: sign.id, what: sign.what, subject };
  }
  if (sign !== undefined) return { kind: sign.id, what: sign.what, subject: "" };
  const pattern = errors.find((each) => matchesLine(each, text));
  return pattern === undefined || notOfPlatform.has(unit)
    ? undefined
    : { kind: "error-line", what: "error line", subject: pattern };
}

/** Selects, on the node, all lines that may mean something, and those with the mark. */
export const journalExpression = ({ errors }: Patterns, mark: string): string =>
  [...signs.flatMap(({ words }) => words ?? []), ...errors.map(expressionOf), mark].join("|");

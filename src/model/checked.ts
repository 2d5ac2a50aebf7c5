import { ClusterError } from "../errors.ts";

/**
 * The outcome of reading user input: its value, or every problem with it, each a sentence for people. Problems are
 * values, not exceptions, so that all those of one command line can be reported together (`bad-usage`).
 */
export type Checked<Value> =
  | { readonly value: Value; readonly problems?: undefined }
  | { readonly value?: undefined; readonly problems: readonly string[] };

export const problem = (text: string): { readonly problems: readonly string[] } => ({
  problems: [text],
});

/** Returns the value, or throws all its problems as one `bad-usage`. */
export function accepted<Value>(checked: Checked<Value>): Value {
  if (checked.problems === undefined) return checked.value;
  throw badUsage(checked.problems);
}

export const badUsage = (problems: readonly string[]): ClusterError =>
  new ClusterError("bad-usage", problems.join("; "), { facts: { problems } });

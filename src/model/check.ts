/** The result of a check. A warning or failure always has instructions to fix the problem. */
export type Outcome = (
  | { readonly status: "pass" | "skip"; readonly message: string }
  | { readonly status: "warn" | "fail"; readonly message: string; readonly remedy: string }
) & {
  /** Lines for `-v`. */
  readonly details?: readonly string[];
};

/** One question about this machine or the account. It changes nothing, and its answer contains no secret. */
export interface Check {
  /** Short, lower case and unique in its list. It appears in the output, and programs identify checks by it. */
  readonly name: string;
  /** Milliseconds without an answer after which the check has failed. */
  readonly limitMs: number;
  /**
   * An error makes the check fail: a ClusterError is reported with its own message, anything else
   * as a bug in this program.
   */
  run(signal: AbortSignal): Promise<Outcome>;
}

export type CheckResult = Outcome & { readonly name: string; readonly ms: number };

/** A check that asks only this machine. */
export const localCheck = (name: string, run: Check["run"]): Check => ({
  name,
  // A busy computer, or one whose disk is slow, takes seconds for a few files.
  limitMs: 60_000,
  run,
});

export const pass = (message: string, details: readonly string[] = []): Outcome => ({
  status: "pass",
  message,
  details,
});
export const skip = (message: string): Outcome => ({ status: "skip", message });
export const warn = (message: string, remedy: string): Outcome => ({
  status: "warn",
  message,
  remedy,
});
export const fail = (message: string, remedy: string): Outcome => ({
  status: "fail",
  message,
  remedy,
});

/** Whether a version such as `7.2.22` is older than this one. A text that is no version isn't. */
export function isOlder(
  version: string,
  [leastMajor, leastMinor]: readonly [number, number],
): boolean {
  const [major = NaN, minor = 0] = version.split(".").map((part) => Number.parseInt(part, 10));
  return major < leastMajor || (major === leastMajor && minor < leastMinor);
}

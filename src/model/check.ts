/** What a check found. A warning or failure always says what to do about it. */
export type Outcome = (
  | { readonly status: "pass" | "skip"; readonly message: string }
  | { readonly status: "warn" | "fail"; readonly message: string; readonly remedy: string }
) & {
  /** Lines for `-v`. */
  readonly details?: readonly string[];
};

/** One question about this machine or the account. It changes nothing, and no answer holds a secret. */
export interface Check {
  /** Short, lower case, unique in its list: it stands in the output, and programs tell checks apart by it. */
  readonly name: string;
  /** After so long without an answer the check has failed. */
  readonly limitMs: number;
  /** What it throws makes it a failed check: a ClusterError with its own words, anything else as a fault of this program. */
  run(signal: AbortSignal): Promise<Outcome>;
}

export type CheckResult = Outcome & { readonly name: string; readonly ms: number };

/** For checks that ask this machine only. */
export const localLimitMs = 5_000;

export const pass = (message: string, details: readonly string[] = []): Outcome => ({
  status: "pass",
  message,
  details,
});
export const skip = (message: string): Outcome => ({ status: "skip", message });
export const warn = (message: string, remedy: string): Outcome => ({ status: "warn", message, remedy });
export const fail = (message: string, remedy: string): Outcome => ({ status: "fail", message, remedy });

import { flag, milliseconds, optional, readArguments, type Shape, signal, text } from "../../model/read-arguments.ts";

/** Options that every operation takes. */
export interface Cancellation {
  /** When aborted, ends the work and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
}

const cancellation: Shape<Cancellation> = { cancelSignal: optional(signal) };

/** Returns the caller's signal, or one that is never aborted. */
export const readCancellation = (given: Cancellation): AbortSignal =>
  readArguments(given, cancellation).cancelSignal ?? new AbortController().signal;

export interface WaitOptions extends Cancellation {
  /** Maximum wait in milliseconds (`deadline-passed`); default: one hour. */
  readonly timeoutMs?: number;
  /**
   * Skips the requests that this machine sends to the masters' web servers, for clusters whose web UI can't be reached
   * from here; default: false.
   */
  readonly skipHttpChecks?: boolean;
}

const wait: Shape<WaitOptions> = {
  ...cancellation,
  timeoutMs: optional(milliseconds),
  skipHttpChecks: optional(flag),
};

export const readWaitOptions = (given: WaitOptions): WaitOptions => readArguments(given, wait);

export interface EnterpriseWaitOptions extends WaitOptions {
  /** Default: `admin`. */
  readonly superuserUsername?: string;
  /** Default: `admin`. */
  readonly superuserPassword?: string;
}

const enterpriseWait: Shape<EnterpriseWaitOptions> = {
  ...wait,
  superuserUsername: optional(text),
  superuserPassword: optional(text),
};

export const readEnterpriseWaitOptions = (given: EnterpriseWaitOptions): EnterpriseWaitOptions =>
  readArguments(given, enterpriseWait);

export interface LogsOptions extends Cancellation {
  /** A path on this machine; default: a new folder in the cluster's `directory`. */
  readonly folder?: string;
}

const logs: Shape<LogsOptions> = { ...cancellation, folder: optional(text) };

export const readLogsOptions = (given: LogsOptions): LogsOptions => readArguments(given, logs);

import { isMarked, outside, unmarked, unmarkedFacts } from "./outside-text.ts";

/**
 * The only error class that users can act on, and the only table of its ids.
 * Anything thrown that is not a ClusterError is a bug (exit code 70).
 */

interface ErrorKind {
  /** The process exit code, as listed in `commands/README.md`. */
  readonly exitCode: 1 | 2 | 3 | 4 | 5 | 255;
  /** The meaning of the id, for the reference. */
  readonly summary: string;
}

export const errorTable = {
  "bad-usage": {
    exitCode: 2,
    summary: "The command line, or a file that it names, is invalid; nothing was changed",
  },
  "cluster-not-found": { exitCode: 3, summary: "No cluster has this id" },
  "node-not-found": { exitCode: 3, summary: "The cluster has no such node" },
  "deadline-passed": { exitCode: 4, summary: "An operation exceeded its time limit" },
  "machine-not-set-up": {
    exitCode: 5,
    summary: "This computer lacks something that the program needs",
  },
  "no-credentials": { exitCode: 5, summary: "No usable cloud credentials were found" },
  "credentials-refused": { exitCode: 5, summary: "The cloud refused the credentials" },
  "not-permitted": { exitCode: 5, summary: "The account lacks a permission" },
  "no-default-network": {
    exitCode: 5,
    summary: "The region has no network that the machines can use",
  },
  "region-not-enabled": {
    exitCode: 5,
    summary: "The region does not exist, or is not enabled for the account",
  },
  "image-not-found": { exitCode: 1, summary: "No suitable image for the nodes was found" },
  "cluster-exists": {
    exitCode: 1,
    summary: "A cluster with this id already exists or is being created",
  },
  "capacity-lacking": {
    exitCode: 1,
    summary: "There is no capacity for the machines, or the account's limit is reached",
  },
  "engine-failed": { exitCode: 1, summary: "The container engine or QEMU reported an error" },
  "cloud-failed": { exitCode: 1, summary: "A cloud request failed" },
  "machine-failed": { exitCode: 1, summary: "A machine stopped or broke before it could be used" },
  "artifact-unreachable": { exitCode: 1, summary: "The artifact cannot be downloaded or read" },
  "artifact-invalid": {
    exitCode: 1,
    summary: "The file is not a release artifact, or not the expected one",
  },
  "variant-mismatch": {
    exitCode: 1,
    summary: "The artifact is of a different variant than requested",
  },
  "configuration-refused": {
    exitCode: 1,
    summary: "The artifact refused the cluster configuration",
  },
  "install-failed": { exitCode: 1, summary: "The installation failed on a node" },
  "upgrade-failed": {
    exitCode: 1,
    summary: "The upgrade failed on a node; its check may not pass",
  },
  "cluster-busy": {
    exitCode: 1,
    summary: "Another upgrade, or other random faults, are running on the cluster",
  },
  "not-installed": { exitCode: 1, summary: "The platform is not installed on the node yet" },
  "login-refused": { exitCode: 1, summary: "The superuser's name or password is wrong" },
  "connection-failed": { exitCode: 1, summary: "A node cannot be reached" },
  "host-key-changed": {
    exitCode: 1,
    summary: "A node presented a host key other than the pinned one",
  },
  "key-missing": { exitCode: 5, summary: "The cluster's SSH key is not on this computer" },
  "node-stopped": { exitCode: 1, summary: "The node is stopped or paused" },
  "remote-command-failed": {
    exitCode: 1,
    summary: "A command that the program ran on a node failed",
  },
  "snapshot-exists": { exitCode: 1, summary: "The cluster has a snapshot with this name" },
  "snapshot-not-found": { exitCode: 3, summary: "The cluster has no snapshot with this name" },
  "snapshot-unusable": {
    exitCode: 1,
    summary: "The snapshot is incomplete or damaged, or made for another QEMU",
  },
  "trouble-noticed": {
    exitCode: 255,
    summary: "Something went wrong on a node while a command ran, such as a unit that failed",
  },
  "output-lost": { exitCode: 1, summary: "The result cannot be written to stdout" },
  "transfer-failed": {
    exitCode: 1,
    summary: "A file cannot be sent to a node, or fetched from it",
  },
} as const satisfies Record<string, ErrorKind>;

export type ErrorId = keyof typeof errorTable;

export interface ErrorDetail {
  /**
   * How to fix the problem: a sentence, preferably with a command. As in messages, options and
   * commands are references (references.ts), to which the command line and the library give their
   * own words.
   */
  readonly hint?: string;
  /** Known facts about the failure, for JSON output and the log. Never a secret. */
  readonly facts?: Readonly<Record<string, unknown>>;
  /** Whether a retry may succeed soon. */
  readonly transient?: boolean;
  readonly cause?: unknown;
}

/** A user's text as messages show it: quoted, with control characters escaped, shortened, and marked as not our own. */
export function quoted(given: string): string {
  return `"${outside(JSON.stringify(given.length > 100 ? `${given.slice(0, 100)}…` : given).slice(1, -1))}"`;
}

export class ClusterError extends Error {
  override readonly name = "ClusterError";
  readonly id: ErrorId;
  readonly hint: string | undefined;
  readonly facts: Readonly<Record<string, unknown>>;
  readonly transient: boolean;
  /**
   * These texts with references, and with marks around outside text (see outside-text.ts), for code
   * that masks secrets or quotes this error in another one.
   */
  readonly #marked: MarkedError;

  constructor(id: ErrorId, message: string, detail: ErrorDetail = {}) {
    super(unmarked(message), detail.cause === undefined ? {} : { cause: detail.cause });
    const { hint, facts = {} } = detail;
    this.#marked = { message, hint, facts };
    this.id = id;
    this.hint = hint === undefined ? undefined : unmarked(hint);
    this.facts = unmarkedFacts(facts);
    this.transient = detail.transient ?? false;
  }

  get exitCode(): number {
    return errorTable[this.id].exitCode;
  }

  static marked(error: ClusterError): MarkedError {
    return error.#marked;
  }
}

/**
 * Returns the same error with other texts or more facts, and this one as its cause. It isn't
 * transient unless the change says so.
 */
export function revised(
  error: ClusterError,
  change: ErrorDetail & { readonly message?: string },
): ClusterError {
  const { message, hint, facts } = ClusterError.marked(error);
  const detail = {
    ...(hint !== undefined && { hint }),
    cause: error,
    ...change,
    facts: { ...facts, ...change.facts },
  };
  return new ClusterError(error.id, change.message ?? message, detail);
}

export interface MarkedError {
  readonly message: string;
  readonly hint: string | undefined;
  readonly facts: Readonly<Record<string, unknown>>;
}

/**
 * An error whose message is our own text, in which outside text is marked. It becomes part of a
 * ClusterError's message.
 */
export class OwnError extends Error {}

export const hasErrorId = (error: unknown, id: ErrorId): error is ClusterError =>
  error instanceof ClusterError && error.id === id;

/** Whether the other side may only be slow or away for a while, so that a later try may succeed. */
export const mayPass = (error: unknown): error is ClusterError =>
  error instanceof ClusterError && (error.transient || error.id === "deadline-passed");

/** Throws the signal's reason if it is aborted, and what isn't a ClusterError, which is a bug. */
export function assertExpected(error: unknown, signal: AbortSignal): asserts error is ClusterError {
  signal.throwIfAborted();
  if (!(error instanceof ClusterError)) throw error;
}

/**
 * Returns the message of anything that was thrown, for use in another message. The message of an
 * error that isn't ours, such as a library's, counts as outside text.
 */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof ClusterError) return ClusterError.marked(thrown).message;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return thrown instanceof OwnError || isMarked(message) || isOfSystem(thrown)
    ? message
    : outside(message);
}

/**
 * What a failure means in the system's own words, such as "no space left on device", without its
 * code, its call and its path.
 */
export function systemReason(error: unknown): string {
  const message = messageOf(error);
  return /^E[A-Z0-9]+: ([^,]+)/.exec(message)?.[1] ?? message;
}

/** The hint of an error, for use in another hint. */
export const hintOf = (error: ClusterError): string | undefined => ClusterError.marked(error).hint;

/** The message of a failed system call contains only the call's name, its meaning, and our own paths and addresses. */
const isOfSystem = (thrown: unknown): boolean =>
  thrown instanceof Error && "code" in thrown && "syscall" in thrown;

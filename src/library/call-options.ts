import { setMaxListeners } from "node:events";
import { ClusterError } from "../errors.ts";
import {
  type Shape,
  flag,
  listOf,
  milliseconds,
  optional,
  readArguments,
  signal,
  text,
} from "../model/read-arguments.ts";
import type { Runtime, Work } from "../system/runtime.ts";
import { type Speaker, neutralSpeaker, spokenBy } from "../references.ts";

export interface Cancellation {
  /** When aborted, ends the work and throws the signal's reason. */
  readonly cancelSignal?: AbortSignal;
}

const cancellation: Shape<Cancellation> = { cancelSignal: optional(signal) };

export const readCancellation = (given: Cancellation): AbortSignal =>
  signalOf(readArguments(given, cancellation));

/** Returns the caller's signal, or one that is never aborted. */
export function signalOf({
  cancelSignal = new AbortController().signal,
}: Cancellation): AbortSignal {
  // Node warns of a leak when a signal gets its eleventh listener, but a call may have one for each node.
  setMaxListeners(0, cancelSignal);
  return cancelSignal;
}

/** The time limit of operations without `timeoutMs`. */
export const usualLimitMs = 60 * 60_000;

export interface WaitOptions extends Cancellation {
  /** Maximum wait in milliseconds (`deadline-passed`); default: one hour. */
  readonly timeoutMs?: number;
  /**
   * Skips the requests that this computer sends to the masters' web servers, for clusters whose web UI can't be reached
   * from here; default: false.
   */
  readonly skipHttpChecks?: boolean;
}

export const waitShape: Shape<WaitOptions> = {
  ...cancellation,
  timeoutMs: optional(milliseconds),
  skipHttpChecks: optional(flag),
};

export interface EnterpriseWaitOptions extends WaitOptions {
  /** Default: `admin`. */
  readonly superuserUsername?: string;
  /** Default: `admin`. */
  readonly superuserPassword?: string;
}

export const enterpriseWaitShape: Shape<EnterpriseWaitOptions> = {
  ...waitShape,
  superuserUsername: optional(text),
  superuserPassword: optional(text),
};

export interface LogsOptions extends Cancellation {
  /** A path on this computer; default: a new folder in the cluster's `directory`. */
  readonly folder?: string;
}

export const logsShape: Shape<LogsOptions> = { ...cancellation, folder: optional(text) };

export interface ExportOptions extends Cancellation {
  /**
   * Public keys (`age1…`, `ssh-…`) for which age, which must be installed, encrypts the text;
   * default: it isn't encrypted.
   */
  readonly recipients?: readonly string[];
}

export const exportShape: Shape<ExportOptions> = {
  ...cancellation,
  recipients: optional(listOf(text)),
};

/** How to write a snapshot to a file. */
export interface SaveOptions extends Cancellation {
  /** Leaves out the images of the nodes, which the other computer must have then; default: false. */
  readonly withoutBase?: boolean;
  /** Replaces an existing file; default: false. */
  readonly replace?: boolean;
  /** Encrypts the file with age, which must be installed, for the owners of these public keys. */
  readonly recipients?: readonly string[];
}

export const saveShape: Shape<SaveOptions> = {
  ...cancellation,
  withoutBase: optional(flag),
  replace: optional(flag),
  recipients: optional(listOf(text)),
};

/** Options that the library calls otherwise than the commands declare them, or doesn't have. */
const libraryNames: ReadonlyMap<string, string> = new Map([
  ["extraConfig", "`clusterConfig`"],
  ["lifetime", "`lifetimeMs`"],
  ["licenseKey", "license_key_contents in `clusterConfig`"],
  ["noTestEnv", "--no-test-env"],
  ["securityMode", "security in `clusterConfig`"],
  ["sshUser", "the `user` of `image`"],
  ["timeout", "`timeoutMs`"],
  ["until", "`timeoutMs`"],
  ["workspaceDir", "TMPDIR"],
]);

/** The library's calls for commands. For other commands, such as `list`, a hint names the command. */
const calls: ReadonlyMap<string, string> = new Map([
  ["create", "`Cluster.create`"],
  ["destroy", "`destroy`"],
  ["export", "`export`"],
  ["import", "`Cluster.import`"],
  ["inspect", "`Cluster.find`"],
  ["node resume", "`resume`"],
  ["node start", "`start`"],
  ["wait", "`waitForCluster`"],
]);

const librarySpeaker: Speaker = {
  option: (name, value) =>
    (value === undefined ? libraryNames.get(name) : undefined) ??
    neutralSpeaker.option(name, value),
  command: (words, verb) => {
    const [command = "", action] = words.split(" ");
    const call = calls.get(action === undefined ? command : `${command} ${action}`);
    if (call === undefined) return neutralSpeaker.command(words, verb);
    return verb === undefined ? call : `${verb === "Run" ? "Call" : "call"} ${call}`;
  },
  // The library reports no details.
  detail: () => "",
};

export const libraryWords = (message: string): string =>
  spokenBy(librarySpeaker, message).trimEnd();

/** Does a call's work until the caller's signal is aborted. Its errors have the library's words. */
export async function libraryCall<Result>(
  runtime: Runtime,
  given: Cancellation,
  task: (work: Work) => Promise<Result>,
): Promise<Result> {
  const work = { ...runtime, signal: signalOf(given) };
  return await inLibraryWords(async () => task(work));
}

export async function inLibraryWords<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    throw withLibraryWords(error);
  }
}

export function withLibraryWords(error: unknown): unknown {
  if (!(error instanceof ClusterError)) return error;
  const { id, transient, cause } = error;
  const own = ClusterError.marked(error);
  const message = libraryWords(own.message);
  const hint = own.hint === undefined ? undefined : libraryWords(own.hint);
  if (message === own.message && hint === own.hint) return error;
  const { problems, ...others } = own.facts;
  const facts = Array.isArray(problems)
    ? { ...others, problems: problems.map(String).map(libraryWords) }
    : others;
  return new ClusterError(id, message, {
    ...(hint !== undefined && hint !== "" && { hint }),
    facts,
    transient,
    cause,
  });
}

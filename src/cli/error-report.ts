import { ClusterError, type MarkedError, messageOf, systemReason } from "../errors.ts";
import { outside, unmarked } from "../outside-text.ts";
import { messageBlock } from "../system/printable.ts";
import { version } from "../version.ts";
import { type Program, Interrupted } from "./command.ts";
import { type NameFlags, flagNames } from "./options/problems.ts";

export interface ErrorReport {
  readonly exitCode: number;
  /** For stderr: what happened, how to fix it, the log, the id. Neither coloured nor masked: outside text is marked. */
  readonly text: string;
  /** For JSON, which leaves out undefined values. Not masked: outside text is marked. */
  readonly data: JsonError;
  /** Stacks of the error and its causes, indented, for -vv and the log. */
  readonly stack: string;
}

/** `error` in the output of `--output json`. */
export interface JsonError {
  /** See the table of error ids in the reference. */
  readonly id: string;
  readonly message: string;
  readonly hint: string | undefined;
  /** The path of the command's log. */
  readonly log: string | undefined;
  /** What is known about the failure; each error has its own. */
  readonly facts: Readonly<Record<string, unknown>>;
}

interface Circumstances {
  readonly program: Program;
  /** Names the flags of the command that failed; absent if there was no command. */
  readonly nameFlags?: NameFlags;
  readonly logPath: string | undefined;
  /** The user's interruption of the work, if there was one. */
  readonly interruption?: Interrupted | undefined;
}

/**
 * Reports anything thrown. Everything except a `ClusterError` and a problem with this machine's
 * files is a bug (exit code 70).
 */
export function reportError(thrown: unknown, circumstances: Circumstances): ErrorReport {
  const origin = originOf(thrown);
  const { interruption } = circumstances;
  const error = interruption !== undefined && isConsequence(origin) ? interruption : origin;
  const summary = summarize(error, circumstances);
  const hint = summary.hint === undefined ? [] : [messageBlock(summary.hint)];
  const log = circumstances.logPath === undefined ? [] : [`Log: ${circumstances.logPath}`];
  return {
    exitCode: summary.exitCode,
    text: [messageBlock(`Error: ${summary.message}`), ...hint, ...log, `[${summary.id}]`].join(
      "\n",
    ),
    data: {
      id: summary.id,
      message: summary.message,
      hint: summary.hint,
      log: circumstances.logPath,
      facts: summary.facts,
    },
    stack: messageBlock(`  ${stackOf(thrown, 0)}`),
  };
}

/** Returns the error for stdout that rejects a text such as the version or the help, which is no command's result. */
export const lostOutputText = (error: unknown): string =>
  `Error: Cannot write to stdout: ${unmarked(systemReason(error))}.\n[output-lost]`;

interface ErrorSummary extends MarkedError {
  readonly id: string;
  readonly exitCode: number;
}

function summarize(
  error: unknown,
  { program, nameFlags = flagNames(program) }: Circumstances,
): ErrorSummary {
  const known = error instanceof ClusterError ? error : localProblem(error);
  if (known !== undefined) {
    const { id, exitCode } = known;
    const { message, hint, facts } = ClusterError.marked(known);
    return {
      id,
      exitCode,
      message: nameFlags(message),
      hint: hint === undefined ? undefined : nameFlags(hint),
      facts,
    };
  }
  if (error instanceof Interrupted) {
    const { message, signalName } = error;
    return {
      id: "interrupted",
      exitCode: 1,
      message,
      hint: undefined,
      facts: { signal: signalName },
    };
  }
  return bugIn(program, error);
}

function bugIn(program: Program, error: unknown): ErrorSummary {
  const what = error instanceof Error ? `${error.name}: ${messageOf(error)}` : messageOf(error);
  return {
    id: "bug",
    exitCode: 70,
    message: `Internal error in ${program.name}: ${what}`,
    hint: `Please report this bug with the version (${version}) and the command that you ran. -vv shows where it happened.`,
    facts: {},
  };
}

/**
 * Returns what went wrong first. If leaving a scope fails as well, the runtime throws a
 * SuppressedError whose `suppressed` is the reason that the scope was left. If several things
 * failed at once, the first failure that a user can act on counts.
 */
export function originOf(thrown: unknown): unknown {
  if (thrown instanceof SuppressedError) return originOf(thrown.suppressed);
  if (!(thrown instanceof AggregateError)) return thrown;
  const origins = thrown.errors.map((each: unknown) => originOf(each));
  return origins.find((each) => each instanceof ClusterError) ?? origins[0] ?? thrown;
}

const deepest = 8;

/** Whether an error only reports that the work was aborted, even if other errors wrap it. */
function isConsequence(error: unknown, depth = 0): boolean {
  if (!(error instanceof Error) || depth > deepest) return false;
  return (
    error instanceof Interrupted ||
    error.name === "AbortError" ||
    isConsequence(error.cause, depth + 1)
  );
}

function stackOf(thrown: unknown, depth: number): string {
  if (!(thrown instanceof Error) || depth > deepest) return outside(String(thrown));
  // The stack quotes the message, which may quote outside text.
  const own = outside(thrown.stack ?? `${thrown.name}: ${thrown.message}`);
  const causes: readonly unknown[] = thrown.cause === undefined ? [] : [thrown.cause];
  const suppressed: readonly unknown[] =
    thrown instanceof SuppressedError ? [thrown.suppressed, thrown.error] : [];
  const several: readonly unknown[] = thrown instanceof AggregateError ? thrown.errors : [];
  const inner = [...causes, ...suppressed, ...several];
  return [own, ...inner.map((each) => `Caused by ${stackOf(each, depth + 1)}`)].join("\n");
}

const elsewhere =
  "pass another path, or set XDG_STATE_HOME, XDG_CACHE_HOME or TMPDIR to another folder.";

/** How to fix problems of this machine that no program can foresee, by the system's error code. */
const remedies: Readonly<Record<string, string>> = {
  ENOSPC: `Free some space on that disk, or ${elsewhere}`,
  EDQUOT: "Delete files of this user: its quota on that disk is used up.",
  EROFS: `That disk is read-only: ${elsewhere}`,
  EACCES: `Give this user permission, or ${elsewhere}`,
  EPERM: `Give this user permission, or ${elsewhere}`,
  ENOTDIR: `A part of that path is not a folder: ${elsewhere}`,
  EISDIR: `A folder is in the place of that file: remove it, or ${elsewhere}`,
  ELOOP: `Links in that path lead to themselves: ${elsewhere}`,
  ENAMETOOLONG: `That path is too long: ${elsewhere}`,
  EFBIG: "Raise the limit on the size of files (ulimit -f).",
  ENOSYS: `That file system lacks what this needs: ${elsewhere}`,
  ENOTSUP: `That file system lacks what this needs: ${elsewhere}`,
  EIO: "Check that disk: it cannot be read or written.",
  EMFILE: "Raise the limit on open files (ulimit -n).",
  ENFILE: "Close other programs: this computer has too many open files.",
};

/**
 * Turns an error about a file that this machine wouldn't let us write, create or open into an error
 * that users can act on. Returns `undefined` for any other error. A full disk, anywhere in the
 * program, is not a bug.
 */
function localProblem(error: unknown): ClusterError | undefined {
  // Errors of connections have an address. The code that connects reports them.
  if (
    !(error instanceof Error) ||
    !("code" in error) ||
    !("syscall" in error) ||
    "address" in error
  )
    return undefined;
  const { code, syscall } = error;
  const hint = remedies[String(code)];
  if (hint === undefined) return undefined;
  // Of a link, `path` is what it would lead to.
  const dest = "dest" in error && typeof error.dest === "string" ? error.dest : undefined;
  const path = "path" in error && typeof error.path === "string" ? { path: error.path } : {};
  return new ClusterError(
    "machine-not-set-up",
    `Cannot access ${dest ?? path.path ?? "a file"} on this computer: ${systemReason(error)}.`,
    {
      hint,
      facts: { code, syscall, ...path },
      cause: error,
    },
  );
}

import { ClusterError } from "../errors.ts";

/** Failures of this machine that no program can foresee: the system's error codes, and how to fix each. */
const remedies: Readonly<Record<string, string>> = {
  ENOSPC: "Make room on that disk.",
  EDQUOT: "Make room: this user's share of that disk is used up.",
  EROFS: "That disk can only be read: name another place, with XDG_STATE_HOME or TMPDIR.",
  EACCES: "Give this user the permission, or name another place, with XDG_STATE_HOME or TMPDIR.",
  EPERM: "Give this user the permission, or name another place, with XDG_STATE_HOME or TMPDIR.",
  EIO: "Look after that disk: it cannot be read or written.",
  EMFILE: "Raise the limit of open files (ulimit -n).",
  ENFILE: "End other programs: the machine has too many files open.",
};

/**
 * Turns an error about a file that this machine wouldn't let us write, create or open into an error that users can act on. Returns `undefined` for
 * any other error. A full disk, anywhere in the program, is not a bug.
 */
export function localTrouble(error: unknown): ClusterError | undefined {
  // Failed connections have an address. They are reported where the connection is made.
  if (!(error instanceof Error) || !("code" in error) || !("syscall" in error) || "address" in error) return undefined;
  const { code, syscall } = error;
  const hint = remedies[String(code)];
  if (hint === undefined) return undefined;
  const path = "path" in error ? { path: error.path } : {};
  return new ClusterError("machine-not-set-up", `A file of this machine is out of reach: ${error.message}.`, {
    hint,
    facts: { code, syscall, ...path },
    cause: error,
  });
}

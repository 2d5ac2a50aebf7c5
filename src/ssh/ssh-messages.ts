import { existsSync, readFileSync, writeSync } from "node:fs";
import { rm } from "node:fs/promises";

/** The file descriptor that ssh inherits too. */
const ownStderr = 2;

/**
 * Keeps what `ssh` itself says away from the command's stderr until it is known how the session went: of a changed host key it would advise to
 * delete the pinned one.
 */
export interface SshMessages extends AsyncDisposable {
  /** Words for ssh's command line. */
  readonly options: readonly string[];
  /** Prints what ssh has said, once. */
  release(): void;
}

/** `path` must be free and in a folder of this user's; nothing is left there. `stderr` is this program's own, or an open file. */
export function createSshMessages(path: string, stderr: "inherit" | number): SshMessages {
  const state = { isReleased: false };
  return {
    options: ["-E", path],
    release: () => {
      if (state.isReleased || !existsSync(path)) return;
      state.isReleased = true;
      const text = readFileSync(path);
      if (text.length > 0) writeSync(stderr === "inherit" ? ownStderr : stderr, text);
    },
    [Symbol.asyncDispose]: () => rm(path, { force: true }),
  };
}

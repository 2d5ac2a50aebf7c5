import { existsSync, readFileSync, writeSync } from "node:fs";
import { rm } from "node:fs/promises";

/** The file descriptor that ssh inherits as well. */
const ownStderr = 2;

/**
 * Keeps ssh's own messages out of the command's stderr until the session's outcome is known: for a changed host key,
 * ssh would advise the user to delete the pinned one.
 */
export interface SshMessages extends AsyncDisposable {
  /** Arguments for ssh's command line. */
  readonly options: readonly string[];
  /** Whether ssh has written none at all. */
  isEmpty(): boolean;
  /** Prints ssh's messages, even after disposal, but only once, except those about a master connection: ssh then logs in by itself. */
  release(): void;
}

/**
 * `path` must not exist and must be in a folder that belongs to this user; disposal removes the file. `stderr` is this
 * program's own, or an open file.
 */
export function createSshMessages(path: string, stderr: "inherit" | number): SshMessages {
  const state = { isReleased: false, text: "" };
  const read = (): string => (existsSync(path) ? readFileSync(path, "utf8") : state.text);
  return {
    options: ["-E", path],
    isEmpty: () => read() === "",
    release: () => {
      if (state.isReleased) return;
      state.isReleased = true;
      const text = withoutSharing(read());
      if (text.length > 0) writeSync(stderr === "inherit" ? ownStderr : stderr, text);
    },
    [Symbol.asyncDispose]: async () => {
      state.text = read();
      await rm(path, { force: true });
    },
  };
}

/** Messages of OpenSSH's mux.c. */
const withoutSharing = (text: string): string => text.replace(/^(?:Control ?[Ss]ocket |mux)[^\n]*\n/gm, "");

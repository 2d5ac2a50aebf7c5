import { closeSync, existsSync, openSync, readSync, statSync, writeSync } from "node:fs";
import { rm } from "node:fs/promises";
import { plainLines } from "../system/printable.ts";

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
  /**
   * Prints the last of ssh's messages, once, also after disposal, except those about a master connection: ssh then logs in by itself. Each is one line that begins with
   * `ssh: `, because ssh quotes, line breaks included, what anyone who answers on the node's address says before the key exchange.
   */
  release(): void;
}

/**
 * `path` must not exist and must be in a folder that belongs to this user; disposal removes the file. `stderr` is this
 * program's own, or an open file.
 */
export function createSshMessages(path: string, stderr: "inherit" | number): SshMessages {
  const state = { isReleased: false, text: "" };
  const read = (): string => (existsSync(path) ? endOf(path) : state.text);
  return {
    options: ["-E", path],
    isEmpty: () => !existsSync(path) || statSync(path).size === 0,
    release: () => {
      if (state.isReleased) return;
      state.isReleased = true;
      const lines = plainLines(read(), mostMessages).filter((line) => !isAboutSharing(line));
      const text = lines.map((line) => `${line.startsWith("ssh: ") ? "" : "ssh: "}${line}\n`).join("");
      if (text !== "") writeSync(stderr === "inherit" ? ownStderr : stderr, text);
    },
    [Symbol.asyncDispose]: async () => {
      state.text = read();
      await rm(path, { force: true });
    },
  };
}

const mostMessages = 20;
const mostBytes = 64 * 1024;

/** Messages of OpenSSH's mux.c. */
const isAboutSharing = (line: string): boolean => /^(?:Control ?[Ss]ocket |mux)/.test(line);

function endOf(path: string): string {
  const buffer = Buffer.alloc(mostBytes);
  const descriptor = openSync(path, "r");
  try {
    const start = Math.max(0, statSync(path).size - mostBytes);
    return buffer.toString("utf8", 0, readSync(descriptor, buffer, 0, mostBytes, start));
  } finally {
    closeSync(descriptor);
  }
}

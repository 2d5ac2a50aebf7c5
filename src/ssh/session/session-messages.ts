import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { rm } from "node:fs/promises";
import { ClusterError } from "../../errors.ts";
import { outside } from "../../outside-text.ts";
import { plainLines, withoutFullStop } from "../../system/printable.ts";
import { openOutput } from "../../system/processes/output.ts";
import { eitherSignal, orAborted } from "../../system/time-limit.ts";
import { type Target, addressOf } from "../connection/connection-errors.ts";
import { type CommandChannel, type Link, openChannel } from "../connection/exec-channel.ts";
import { quote } from "../shell-text.ts";

const limitMs = 5_000;
const longestWord = 200;

/**
 * Explains a command whose channel ended, with whatever status, without proof that the command had begun: the login
 * shell isn't a POSIX shell, its start-up files end it, or sshd runs something else instead. Throws
 * the signal's reason, such as a lost connection.
 */
export async function commandNotBegun(
  link: Link,
  { status, output }: { readonly status: number; readonly output: string },
  signal: AbortSignal,
): Promise<ClusterError> {
  const { name, user } = link.target;
  const refusal = plainLines(output, mostMessages, longestWord).find((text) =>
    /(?:^|\s)sudo: /.test(text),
  );
  if (refusal !== undefined) return sudoRefused(link.target, refusal);
  const shell = await loginShell(link, signal);
  signal.throwIfAborted();
  const line = plainLines(output, 1, longestWord)[0] ?? "";
  const words = line === "" ? "printed nothing" : `printed ${outside(JSON.stringify(line))}`;
  const subject =
    shell === undefined ? "the program that sshd runs" : `the login shell ${outside(shell)}`;
  const message = `${addressOf(link.target)} did not run the command: ${subject} ${words} and exited with status ${status}.`;
  return new ClusterError("remote-command-failed", message, {
    hint: `The login shell of ${user} must be a POSIX shell such as /bin/bash, its start-up files must not end it, and sshd_config must not set ForceCommand for this user. Choose another image, or change this one.`,
    facts: { node: name, status, ...(shell !== undefined && { loginShell: outside(shell) }) },
  });
}

/** The login shell got as far as sudo. */
function sudoRefused(target: Target, line: string): ClusterError {
  const message = `${addressOf(target)} did not run the command as root: ${withoutFullStop(outside(line))}.`;
  return new ClusterError("remote-command-failed", message, {
    hint: `sudo must let ${target.user} run everything without a password and without a terminal: check NOPASSWD and requiretty in the node's sudoers, or choose another image.`,
    facts: { node: target.name },
  });
}

/** Every shell understands this line. Undefined if no shell answers, as with a ForceCommand. */
async function loginShell(link: Link, signal: AbortSignal): Promise<string | undefined> {
  using limit = eitherSignal([signal, AbortSignal.timeout(limitMs)]);
  const read = (channel: CommandChannel): { readonly text: Promise<string> } => ({
    text: new Promise((resolve, reject) => {
      const seen = { text: "" };
      channel.on("data", (chunk: Buffer) => {
        seen.text = (seen.text + chunk.toString()).slice(-longestWord * 10);
      });
      channel.stderr.resume();
      channel.on("error", () => {}).on("close", () => resolve(seen.text));
      const onAbort = (): void => {
        channel.close();
        reject(limit.signal.reason);
      };
      limit.signal.addEventListener("abort", onAbort, { once: true });
      channel.end();
    }),
  });
  try {
    const { text } = await openChannel(link, "echo e2e-login-shell=$SHELL", read, limit.signal);
    return /e2e-login-shell=(\/[\w./+-]+)/.exec(await text)?.[1];
  } catch {
    return undefined;
  }
}

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
  /** Whether the server has closed the connection in place of a greeting. */
  tellHangUp(): boolean;
  /**
   * Prints the last of ssh's messages, once, even after disposal, but not those about a master
   * connection. Each becomes one line that begins with `ssh: `, because ssh quotes, line breaks
   * included, what anyone who answers on the node's address says before the key exchange. Resolves
   * when they are written, or can't be.
   */
  release(signal: AbortSignal): Promise<void>;
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
    tellHangUp: () =>
      plainLines(read(), mostMessages).some(
        (line) => /exchange_identification: /.test(line) && /closed|reset/.test(line),
      ),
    release: async (signal) => {
      if (state.isReleased) return;
      state.isReleased = true;
      const lines = plainLines(read(), mostMessages).filter((line) => !isAboutSharing(line));
      const text = lines
        .map((line) => `${line.startsWith("ssh: ") ? "" : "ssh: "}${line}\n`)
        .join("");
      if (text === "") return;
      using output = await openOutput(stderr === "inherit" ? ownStderr : stderr);
      await orAborted(
        output.write(text).catch(() => {}),
        signal,
      );
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

/** Tells whether an `ssh` that has ended had logged in. Its exit status can't: 255 may be the remote command's own. */
export interface LoginMark extends AsyncDisposable {
  /** Arguments for ssh's command line. */
  readonly options: readonly string[];
  /**
   * Variables that ssh must find in its environment: it passes LocalCommand to the user's shell,
   * which may be any program.
   */
  readonly environment: Readonly<Record<string, string>>;
  /** Stays the same after disposal. */
  isSet(): boolean;
}

/**
 * ssh itself creates an empty file as soon as it has logged in, before the remote command begins.
 * `path` must not exist and must be in a folder that belongs to this user; disposing of the mark
 * removes the file. https://man.openbsd.org/ssh_config#LocalCommand
 */
export function createLoginMark(path: string): LoginMark {
  const command = `: >${quote([path])}`.replaceAll("%", "%%");
  const state = { wasSet: false };
  const isSet = (): boolean => state.wasSet || existsSync(path);
  return {
    options: ["-o", "PermitLocalCommand=yes", "-o", `LocalCommand=${command}`],
    environment: { SHELL: "/bin/sh" },
    isSet,
    [Symbol.asyncDispose]: async () => {
      state.wasSet = isSet();
      await rm(path, { force: true });
    },
  };
}

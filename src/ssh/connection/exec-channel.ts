import type { Duplex, Readable } from "node:stream";
import type { Semaphore } from "../../system/concurrency.ts";
import type { Runtime } from "../../system/runtime.ts";
import { type Target, channelRefused, connectionLost } from "./connection-errors.ts";
import type { Connection } from "./connection.ts";

/**
 * Starts a shell line on the node and passes its channel to `begin` the moment it opens. A fast
 * node can send its answer, even the exit status, in the same packet as the opening; without a
 * listener it would be lost. Resolves at once with what `begin` returns, which is not a promise.
 * Throws `connection-failed` or with the reason of the signal, which must also abort when the link
 * is lost.
 */
export function openChannel<Result>(
  link: Link,
  line: string,
  begin: (channel: CommandChannel) => Result,
  signal: AbortSignal,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const onAnswer = (error: Error | undefined, channel: CommandChannel | undefined): void => {
      signal.removeEventListener("abort", onAbort);
      // If the signal aborted in the meantime, nobody waits for this channel any more.
      if (signal.aborted) channel?.close();
      else if (channel === undefined) reject(error ?? connectionLost(link.target, undefined));
      else resolve(begin(channel));
    };
    try {
      link.exec(line, (error, channel) => {
        onAnswer(error === undefined ? undefined : channelRefused(link.target, error), channel);
      });
    } catch (error) {
      // ssh2 throws "Not connected" between a loss and its report of the loss.
      onAnswer(connectionLost(link.target, error instanceof Error ? error : undefined), undefined);
    }
  });
}

/**
 * Writes all of a command's stdin, no faster than the node reads it, and then closes it. Resolves
 * early, without an error, if the command stops reading. Rejects only with an error of the source
 * itself or with the signal's reason.
 */
export async function feed(
  channel: CommandChannel,
  source: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  for await (const chunk of source) {
    signal.throwIfAborted();
    if (!channel.writable) return;
    if (!channel.write(chunk)) await drained(channel, signal);
  }
  channel.end();
}

/** ssh2 never calls back for data written to a closed channel, so the channel's end counts too. */
function drained(channel: CommandChannel, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const settle = (act: () => void) => (): void => {
      channel.off("drain", onDone).off("close", onDone).off("exit", onDone);
      signal.removeEventListener("abort", onAbort);
      act();
    };
    const onDone = settle(resolve);
    const onAbort = settle(() => reject(signal.reason));
    channel.once("drain", onDone).once("close", onDone).once("exit", onDone);
    signal.addEventListener("abort", onAbort, { once: true });
  });
}

/**
 * A command's streams, as in ssh2. Emits `exit` with the status or a signal's name, and `close`
 * once both streams have ended.
 */
export interface CommandChannel extends Duplex {
  readonly stderr: Readable;
  close(): void;
}

/** A login to a node, with everything needed to run commands over it. */
export interface Link extends Pick<Runtime, "clock" | "progress"> {
  /** Starts a shell line on the node. */
  readonly exec: (
    line: string,
    onAnswer: (error: Error | undefined, channel: CommandChannel | undefined) => void,
  ) => unknown;
  /** Explains a command whose channel ended without proof that the command had begun. */
  readonly explain: (
    link: Link,
    end: { readonly status: number; readonly output: string },
    signal: AbortSignal,
  ) => Promise<Error>;
  readonly target: Target;
  /** Aborts as soon as the connection is lost, with the ClusterError that says why. */
  readonly lost: AbortSignal;
  /**
   * sshd allows ten sessions per connection (MaxSessions), and frees a session only a moment after
   * its command. So commands may use half of them, and some of the others end commands that were
   * given up.
   */
  readonly commandSlots: Semaphore;
  readonly endingSlots: Semaphore;
  /** Absent: each command that runs as root gets a session of its own. */
  readonly rootShells?: RootShells;
  /** Opens a second connection to the same node, because this one may have no session left, as with `MaxSessions 1`. */
  readonly openAnother: (signal: AbortSignal) => Promise<Connection>;
}

/**
 * Root shells of a login: each runs one command at a time, and the next one without another
 * session, login shell and sudo. A shell whose command was given up is not used again.
 */
export interface RootShells {
  /**
   * Returns how to run one line as root; undefined if the command needs a session of its own.
   * Throws the signal's reason.
   */
  take(link: Link, signal: AbortSignal): Promise<Link["exec"] | undefined>;
  /**
   * Called once a command has run on this login. Until then, another program in place of the login
   * shell could wait for the end of its stdin.
   */
  allow(): void;
  /** Opens no more of them, because the node lacks sessions, and frees those that are held. */
  giveUp(): void;
}

import type { ClientChannel } from "ssh2";
import { channelRefused, connectionLost } from "./connection-errors.ts";
import type { Link } from "./connection.ts";

/**
 * Starts a shell line on the node and passes its channel to `begin` the moment it opens. A fast node can send its answer, even the exit status, in
 * the same packet as the opening; without a listener it would be lost. Resolves at once with what `begin` returns, which is not a promise. Rejects as
 * `connection-failed` or with the reason of the signal, which must also abort when the link is lost.
 */
export function openChannel<Result>(
  link: Link,
  line: string,
  begin: (channel: ClientChannel) => Result,
  signal: AbortSignal,
): Promise<Result> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    const onAnswer = (error: Error | undefined, channel: ClientChannel | undefined): void => {
      signal.removeEventListener("abort", onAbort);
      // If the signal aborted in the meantime, nobody waits for this channel any more.
      if (signal.aborted) channel?.close();
      else if (channel === undefined) reject(error ?? connectionLost(link.target, undefined));
      else resolve(begin(channel));
    };
    try {
      link.client.exec(line, (error, channel) => {
        if (error === undefined) onAnswer(undefined, channel);
        else onAnswer(channelRefused(link.target, error), undefined);
      });
    } catch (error) {
      // ssh2 throws "Not connected" between a loss and its report of the loss.
      onAnswer(connectionLost(link.target, error instanceof Error ? error : undefined), undefined);
    }
  });
}

/**
 * Writes all of a command's stdin, no faster than the node reads it, and then closes it. Resolves early, without an error, if the command stops
 * reading. Rejects only with an error of the source itself or with the signal's reason.
 */
export async function feed(
  channel: ClientChannel,
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
function drained(channel: ClientChannel, signal: AbortSignal): Promise<void> {
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

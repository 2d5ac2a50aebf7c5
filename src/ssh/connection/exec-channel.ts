import type { ClientChannel } from "ssh2";
import { channelRefused, connectionLost } from "./connection-errors.ts";
import type { Link } from "./link.ts";

/**
 * Starts a shell line on the node, and hands its channel to `begin` in the very moment it opens: a fast node's answer, exit status included,
 * can come in one packet with the opening, and what nobody listens for then is lost. Resolves at once with what `begin` returns, which is no
 * promise; rejects as `connection-failed`, or with the reason of the signal, which must cover the link's loss too.
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
      // When it was aborted meanwhile, nobody waits for this channel any more.
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
      // ssh2 throws "Not connected" while a loss is on its way but not yet told.
      onAnswer(connectionLost(link.target, error instanceof Error ? error : undefined), undefined);
    }
  });
}

/**
 * Writes all of a command's stdin, not faster than the node takes it, and ends it. Resolves early, without a word, when the command stops
 * listening. Rejects only with what the source itself throws, or with the signal's reason.
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

/** ssh2 never calls back for what is written to a closed channel, so its end counts as well. */
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

import type { ClientChannel } from "ssh2";

/** Bytes on their way from a channel to a reader that may be slower: the channel pauses until the reader asks for more. */
export interface ByteQueue {
  add(chunk: Uint8Array): void;
  end(): void;
  /** Fails with the signal's reason once that is aborted. */
  chunks(): AsyncGenerator<Uint8Array, void, undefined>;
  /** From now on everything is dropped as it arrives. */
  close(): void;
}

export function byteQueue(channel: ClientChannel, signal: AbortSignal): ByteQueue {
  const waiting: Uint8Array[] = [];
  const state = { hasEnded: false, isClosed: false, wake: (): void => {} };
  signal.addEventListener("abort", () => state.wake(), { once: true });
  return {
    add: (chunk) => {
      if (state.isClosed || chunk.length === 0) return;
      waiting.push(chunk);
      channel.pause();
      state.wake();
    },
    end: () => {
      state.hasEnded = true;
      state.wake();
    },
    close: () => {
      state.isClosed = true;
      channel.resume();
    },
    chunks: async function* () {
      for (;;) {
        signal.throwIfAborted();
        const chunk = waiting.shift();
        if (chunk !== undefined) yield chunk;
        else if (state.hasEnded) return;
        else {
          const woken = Promise.withResolvers<void>();
          state.wake = woken.resolve;
          channel.resume();
          await woken.promise;
        }
      }
    },
  };
}

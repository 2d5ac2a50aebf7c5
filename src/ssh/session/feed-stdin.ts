import type { FileSink } from "bun";
import type { Environment } from "../../system/environment.ts";

export interface StdinFeed {
  /** Goes first. */
  readonly head: string;
  /** Follows: this program's own stdin, or an open file. */
  readonly source: "inherit" | number;
  readonly sink: FileSink;
  readonly environment: Environment;
}

/**
 * Passes stdin on behind a text of ours, not faster than it is taken, until its end or the signal's. A `cat` of its own reads it: a read that
 * this process began on a terminal could not be taken back, and would keep it alive after the command has ended.
 */
export async function feedStdin({ head, source, sink, environment }: StdinFeed, signal: AbortSignal): Promise<void> {
  const cat = Bun.spawn(["cat"], { stdio: [source, "pipe", "ignore"], env: environment });
  const stop = (): void => cat.kill();
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  try {
    await pass(sink, Buffer.from(head));
    for await (const chunk of cat.stdout) await pass(sink, chunk);
    await sink.end();
  } catch (error) {
    // The taking side has gone, as `yes | program | head` makes it; its own end tells why.
    if (!signal.aborted && !isBrokenPipe(error)) throw error;
  } finally {
    stop();
    signal.removeEventListener("abort", stop);
  }
}

async function pass(sink: FileSink, chunk: Uint8Array): Promise<void> {
  await sink.write(chunk);
  await sink.flush();
}

const isBrokenPipe = (error: unknown): boolean => error instanceof Error && "code" in error && error.code === "EPIPE";

import type { FileSink } from "bun";
import type { Environment } from "../../system/runtime.ts";

export interface StdinFeed {
  /** Sent first. */
  readonly head: string;
  /** Sent next: this program's own stdin, or an open file. */
  readonly source: "inherit" | number;
  readonly sink: FileSink;
  readonly environment: Environment;
}

/**
 * Passes on stdin after a text of ours, no faster than the receiver reads it, until stdin ends or the signal aborts. A separate `cat` reads stdin: a
 * read that this process began on a terminal could not be cancelled, and would keep the process alive after the command has ended.
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
    // The receiver has gone, as in `yes | program | head`; its exit status says why.
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

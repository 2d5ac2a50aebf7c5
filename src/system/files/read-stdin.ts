import { read } from "node:fs";
import { orAborted } from "../time-limit.ts";

const stdin = 0;
const pauseMs = 20;

/**
 * Reads what stdin has next into the buffer, and returns how many bytes; 0 at the end. It uses the
 * descriptor, because `/dev/stdin` can't be opened if stdin is a socket or another user's file.
 * Rejects with the system's error or the signal's reason.
 */
export async function readStdin(buffer: Buffer, signal: AbortSignal): Promise<number> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<number>();
  read(stdin, buffer, 0, buffer.length, null, (error, count) => {
    if (error?.code === "EAGAIN") setTimeout(() => resolve(readStdin(buffer, signal)), pauseMs);
    else if (error !== null && error.code !== "EOF") reject(error);
    else resolve(error === null ? count : 0);
  });
  return orAborted(promise, signal);
}

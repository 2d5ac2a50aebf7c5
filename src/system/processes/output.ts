import { closeSync, constants, fstatSync, openSync, readFileSync, writeSync } from "node:fs";
import { platform } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { isatty } from "node:tty";
import { errorCode } from "../files/private-file.ts";
import { closedError, descriptorInfo, wasClosed } from "./closed-descriptor.ts";

/**
 * One of this process's own outputs. The shell that started it, and the programs that the shell
 * starts next, share its description.
 */
export interface Output extends Disposable {
  /**
   * Writes all of the bytes, in the order of the calls, as fast as the reader takes them. What it
   * takes at once has been written when this returns. Rejects with the system's error.
   */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Drops what a slow reader has not taken yet. */
  [Symbol.dispose](): void;
}

/**
 * Opens an output, but doesn't change it for others: as soon as anything touches `process.stdout`,
 * Bun 1.4.4 makes a pipe or socket non-blocking for all who share it, and for good, so that the
 * next `cat` in a script fails with EAGAIN.
 *
 * A blocking write to a slow reader must not stop this process, or one of Bun's few threads for
 * files. So pipes and terminals are opened once more, because the flags of the new description are
 * ours alone. Where the system can't do that (sockets, macOS), `poll` says when the reader has
 * room.
 */
export async function openOutput(descriptor: number): Promise<Output> {
  if (descriptor <= 2 && wasClosed(infoOf(descriptor)))
    return descriptor === 2 ? unwanted : closedOutput;
  const own = isatty(descriptor) || kindOf(descriptor) === "pipe" ? reopen(descriptor) : undefined;
  const close = (): void => (own === undefined ? undefined : closeSync(own));
  if (own !== undefined || kindOf(descriptor) === "file")
    return new DescriptorOutput({
      descriptor: own ?? descriptor,
      mostBytes: Infinity,
      isReady: () => true,
      close,
    });
  const mostBytes = platform() === "linux" ? 4096 : 512;
  return new DescriptorOutput({
    descriptor,
    mostBytes,
    isReady: await readinessOf(descriptor),
    close,
  });
}

/**
 * Codes of errors that mean that the reader has closed the stream (`| head -1`, a closed window).
 * That is not a failure.
 */
const quietCodes = ["EPIPE", "EIO", "ECONNRESET"];

/** Whether an output was lost, and not because nobody wants it any more. */
export const isLoss = (error: unknown): boolean => !quietCodes.includes(errorCode(error) ?? "");

/** Nobody wants to see errors, which is no failure. */
const unwanted: Output = { write: async () => {}, [Symbol.dispose]: () => {} };

const closedOutput: Output = {
  write: async (bytes) => {
    if (bytes.length > 0) throw closedError();
  },
  [Symbol.dispose]: () => {},
};

function infoOf(descriptor: number): string {
  try {
    return readFileSync(descriptorInfo(descriptor), "utf8");
  } catch {
    return "";
  }
}

/**
 * Opens a pipe or terminal once more, non-blocking. The caller closes it; no child inherits it by
 * itself. Undefined if the system can't.
 */
export function reopen(descriptor: number): number | undefined {
  if (platform() !== "linux") return undefined;
  try {
    const { O_WRONLY, O_NONBLOCK, O_NOCTTY } = constants;
    return openSync(`/proc/self/fd/${descriptor}`, O_WRONLY | O_NONBLOCK | O_NOCTTY);
  } catch {
    // Another user's, as after `sudo`, or there is no /proc.
    return undefined;
  }
}

export function kindOf(descriptor: number): "pipe" | "file" | "other" {
  try {
    const stats = fstatSync(descriptor);
    return stats.isFIFO() ? "pipe" : stats.isFile() ? "file" : "other";
  } catch {
    return "other";
  }
}

const pollOut = 4;

/**
 * Returns a check for whether the descriptor can be written to now; writing fails at once if its
 * reader has closed it.
 */
async function readinessOf(descriptor: number): Promise<() => boolean> {
  const { loadFunctions } = await import("./load-functions.ts");
  const system = await loadFunctions({ poll: { args: ["ptr", "u32", "i32"], returns: "i32" } });
  // struct pollfd: the descriptor, and the events, with those that have occurred in the upper half.
  return () =>
    system === undefined || system.poll(new Int32Array([descriptor, pollOut]), 1, 0) === 1;
}

const longestPauseMs = 20;

interface Parts {
  readonly descriptor: number;
  /** A write of as many bytes doesn't block when `isReady`. */
  readonly mostBytes: number;
  readonly isReady: () => boolean;
  readonly close: () => void;
}

class DescriptorOutput implements Output {
  readonly #parts: Parts;
  readonly #waiting: { rest: Uint8Array; readonly settle: PromiseWithResolvers<void> }[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async write(bytes: string | Uint8Array): Promise<void> {
    const waiting = { rest: Buffer.from(bytes), settle: Promise.withResolvers<void>() };
    const isFirst = this.#waiting.push(waiting) === 1;
    await Promise.all([
      waiting.settle.promise,
      isFirst && !this.#advance() ? this.#finish() : undefined,
    ]);
  }

  [Symbol.dispose](): void {
    for (const { settle } of this.#waiting.splice(0)) settle.resolve();
    this.#parts.close();
  }

  /** Writes what the reader takes now. Returns whether nothing is left. */
  #advance(): boolean {
    const { descriptor, mostBytes, isReady } = this.#parts;
    for (let first = this.#waiting[0]; first !== undefined; first = this.#waiting[0]) {
      try {
        while (first.rest.length > 0 && isReady())
          first.rest = first.rest.subarray(
            writeSync(descriptor, first.rest.subarray(0, mostBytes)),
          );
        if (first.rest.length > 0) return false;
        first.settle.resolve();
      } catch (error) {
        // A parent may have made a shared description non-blocking.
        if (errorCode(error) === "EAGAIN") return false;
        first.settle.reject(error);
      }
      this.#waiting.shift();
    }
    return true;
  }

  async #finish(): Promise<void> {
    for (let pauseMs = 1, left = this.#size(); !this.#advance(); left = this.#size()) {
      pauseMs = this.#size() < left ? 1 : Math.min(2 * pauseMs, longestPauseMs);
      await wait(pauseMs);
    }
  }

  #size(): number {
    return this.#waiting.reduce((sum, { rest }) => sum + rest.length, 0);
  }
}

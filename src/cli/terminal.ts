import { isatty } from "node:tty";
import { printable } from "../system/printable.ts";
import type { Screen } from "./terminal/live-area.ts";
import type { ProcessLike } from "./context.ts";

type StreamName = "stdin" | "stdout" | "stderr";

/** A reader that closed the stream (`| head -1`, a closed window) wants no more output. That is not a failure. */
const quietCodes = new Set(["EPIPE", "EIO", "ECONNRESET", "ERR_STREAM_DESTROYED", "ERR_STREAM_WRITE_AFTER_END"]);

/**
 * The process's streams. All output goes through `write`, which makes it printable, except what `screen` draws and paints. Neither throws. `flush`
 * waits until slow readers have received everything.
 */
export class Terminal {
  readonly #host: ProcessLike;
  readonly #pending = new Set<Promise<void>>();
  readonly #closed = new Set<StreamName>();
  readonly #listening = new Set<StreamName>();
  readonly #failures: Error[] = [];

  constructor(host: ProcessLike) {
    this.#host = host;
  }

  /** Checks the descriptor, because merely touching a stream of the process costs milliseconds. */
  isTerminal(name: StreamName): boolean {
    return isatty(["stdin", "stdout", "stderr"].indexOf(name));
  }

  /** The screen on which progress is drawn. */
  get screen(): Screen {
    const { stderr } = this.#host;
    const write = (text: string): void => this.#write("stderr", text);
    return {
      get columns() {
        return told(stderr.columns) ?? 80;
      },
      get rows() {
        return told(stderr.rows) ?? 24;
      },
      write,
    };
  }

  get stdoutColumns(): number | undefined {
    return this.isTerminal("stdout") ? told(this.#host.stdout.columns) : undefined;
  }

  write(name: "stdout" | "stderr", text: string): void {
    this.#write(name, printable(text));
  }

  #write(name: "stdout" | "stderr", text: string): void {
    if (text === "" || this.#closed.has(name)) return;
    this.#listen(name);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pending.add(promise);
    const settle = (error?: Error | null): void => {
      if (error) this.#fail(name, error);
      this.#pending.delete(promise);
      resolve();
    };
    try {
      this.#host[name].write(text, settle);
    } catch (error) {
      settle(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** Resolves when all output so far has been accepted or rejected. */
  async flush(): Promise<void> {
    while (this.#pending.size > 0) await Promise.all(this.#pending);
  }

  /** Why stdout didn't accept everything; absent if it did, or if its reader closed it. */
  get stdoutFailure(): Error | undefined {
    return this.#failures[0];
  }

  #listen(name: "stdout" | "stderr"): void {
    if (this.#listening.has(name)) return;
    this.#listening.add(name);
    this.#host[name].on("error", (error: Error) => this.#fail(name, error));
  }

  #fail(name: StreamName, error: NodeJS.ErrnoException): void {
    if (this.#closed.has(name)) return;
    this.#closed.add(name);
    if (name === "stdout" && !quietCodes.has(error.code ?? "")) this.#failures.push(error);
  }
}

/** A terminal without a configured size reports 0, as on some build machines. */
const told = (size: number | undefined): number | undefined => (size === 0 ? undefined : size);

import { spawnSync } from "node:child_process";
import { isatty } from "node:tty";
import { ClusterError } from "../errors.ts";
import { plainLine, printable } from "../system/printable.ts";
import { type Output, isLoss, openOutput } from "../system/processes/output.ts";
import { ifKilled } from "../system/processes/if-killed.ts";
import { minimalEnvironment } from "../system/processes/run-program.ts";
import type { Environment } from "../system/runtime.ts";
import { unreadableReason } from "../system/files/read-text.ts";
import { readStdin } from "../system/files/read-stdin.ts";
import { utf8Text } from "../system/utf8.ts";
import type { Answers, ProcessLike } from "./command.ts";
import { pageWidth } from "./help/prepared-help-name.ts";
import type { Screen } from "./terminal/live-area.ts";

type OutputName = "stdout" | "stderr";

const descriptors = { stdin: 0, stdout: 1, stderr: 2 } as const;

/** How many writes may wait for a slow reader before `paint` waits too. */
const mostPending = 100;

/** The process's outputs; `openOutputs` opens them. */
export type Outputs = Readonly<Record<OutputName, Output>>;

export async function openOutputs(): Promise<Outputs> {
  const [stdout, stderr] = await Promise.all([
    openOutput(descriptors.stdout),
    openOutput(descriptors.stderr),
  ]);
  return { stdout, stderr };
}

/**
 * The process's streams. All output goes through `write`, which makes it printable, except what
 * `screen` draws and paints. Neither throws. `flush` waits until slow readers have received
 * everything.
 */
export class Terminal {
  readonly #host: ProcessLike;
  readonly #outputs: Outputs;
  readonly #pending = new Set<Promise<void>>();
  readonly #closed = new Set<OutputName>();
  readonly #failures: Error[] = [];
  readonly #state: { taken?: Promise<void> } = {};

  constructor(host: ProcessLike, outputs: Outputs) {
    this.#host = host;
    this.#outputs = outputs;
  }

  isTerminal(name: "stdin" | OutputName): boolean {
    return isatty(descriptors[name]);
  }

  get screen(): Screen {
    const size = () => this.#size("stderr");
    const columns = (): number => this.columns("stderr");
    const write = (text: string): void => this.#write("stderr", text);
    return {
      get columns() {
        return columns();
      },
      get rows() {
        return size().rows ?? 24;
      },
      write,
    };
  }

  /** The width for text: the terminal's, or COLUMNS where there is none, or that of a page. */
  columns(name: OutputName): number {
    const wanted = Number(this.#host.env["COLUMNS"] ?? "");
    const otherwise = wanted >= 40 ? wanted : pageWidth;
    return this.#size(name).columns ?? otherwise;
  }

  /**
   * Asks the system as node:tty does. `process.stderr.columns` would make the description
   * non-blocking; see `openOutput`.
   */
  #size(name: OutputName) {
    const size: [columns: number, rows: number] = [0, 0];
    try {
      const { TTY } = this.#host.binding?.("tty_wrap") ?? {};
      if (TTY !== undefined) new TTY(descriptors[name]).getWindowSize(size);
    } catch {
      // It is no terminal.
    }
    const [columns, rows] = size;
    return { columns: knownSize(columns), rows: knownSize(rows) };
  }

  write(name: OutputName, text: string): void {
    this.#write(name, printable(text));
  }

  /** Writes a text that is printable, except for colours. */
  writePainted(name: OutputName, text: string): void {
    this.#write(name, text);
  }

  /** Writes a text that is printable, except for colours. Returns a promise if much is waiting for the reader. */
  paint(name: OutputName, text: string): void | Promise<void> {
    this.writePainted(name, text);
    return this.#pending.size > mostPending ? this.#untilTaken() : undefined;
  }

  #write(name: OutputName, text: string): void {
    if (text === "" || this.#closed.has(name)) return;
    const pending = this.#outputs[name]
      .write(text)
      .catch((error: unknown) => this.#fail(name, error))
      .finally(() => this.#pending.delete(pending));
    this.#pending.add(pending);
  }

  isClosed(name: OutputName): boolean {
    return this.#closed.has(name);
  }

  /**
   * Resolves when all output has been accepted or rejected. One wait is for all callers, because
   * thousands of lines may arrive at once.
   */
  async flush(): Promise<void> {
    await this.#untilTaken();
  }

  #untilTaken(): Promise<void> {
    this.#state.taken ??= this.#drain();
    return this.#state.taken;
  }

  async #drain(): Promise<void> {
    do await Promise.all(this.#pending);
    while (this.#pending.size > 0);
    delete this.#state.taken;
  }

  /** Why stdout didn't accept everything; absent if it did, or if its reader closed it. */
  get stdoutFailure(): Error | undefined {
    return this.#failures[0];
  }

  #fail(name: OutputName, error: unknown): void {
    if (this.#closed.has(name)) return;
    this.#closed.add(name);
    if (name === "stdout" && isLoss(error)) this.#failures.push(asError(error));
  }
}

const asError = (error: unknown): Error =>
  error instanceof Error ? error : new Error(String(error));

/** A terminal without a configured size reports 0, as on some build machines. */
const knownSize = (size: number): number | undefined => (size === 0 ? undefined : size);

interface Parts {
  readonly isTerminal: boolean;
  readonly environment: Environment;
  readonly ask: (prompt: string) => void;
  readonly hide: (secret: string) => void;
  /** Registers how to undo changes to the terminal if the program ends at once. */
  readonly onAbandon: (undo: () => string) => Disposable;
}

const longestBytes = 65_536;

/**
 * Asks questions on stderr and reads answers from stdin. A secret is not echoed on a terminal, and
 * is masked from then on.
 */
export function answers(parts: Parts): Answers {
  return {
    confirm: async (question, signal) => {
      parts.ask(`${plainLine(question)} [y/N] `);
      const answer = await readLine(signal);
      if (answer === undefined) parts.ask("\n");
      return /^y(?:es)?$/i.test(answer?.trim() ?? "");
    },
    readSecret: async (prompt, signal) => {
      const secret = parts.isTerminal
        ? await readUnseen(prompt, parts, signal)
        : await readSecretLine(signal);
      parts.hide(secret);
      return secret;
    },
  };
}

async function readUnseen(prompt: string, parts: Parts, signal: AbortSignal): Promise<string> {
  const stty = (word: string): boolean =>
    spawnSync("stty", [word], {
      stdio: ["inherit", "ignore", "ignore"],
      env: minimalEnvironment(parts.environment),
    }).status === 0;
  if (!stty("-echo"))
    throw new ClusterError(
      "machine-not-set-up",
      "stty cannot hide what is typed on this terminal.",
      {
        hint: "Pass the secret on the first line of stdin instead.",
      },
    );
  const restore = (): string => {
    stty("echo");
    return "";
  };
  using _undo = parts.onAbandon(restore);
  using _watching = ifKilled({ line: "stty echo", hasStdin: true }, parts.environment);
  parts.ask(prompt);
  try {
    return await readSecretLine(signal);
  } finally {
    restore();
    parts.ask("\n");
  }
}

async function readSecretLine(signal: AbortSignal): Promise<string> {
  const line = await readLine(signal);
  if (line !== undefined) return line;
  throw new ClusterError("bad-usage", 'stdin ended before the secret that "-" stands for.', {
    hint: "Pass it on the first line of stdin, or run the program on a terminal to be prompted for it.",
  });
}

/**
 * Returns undefined if stdin ends before a line begins. Reads byte by byte, because the rest
 * belongs to the next reader of stdin, such as a command on a node.
 */
async function readLine(signal: AbortSignal): Promise<string | undefined> {
  const bytes: number[] = [];
  for (;;) {
    const byte = await readByte(signal);
    if (byte === undefined && bytes.length === 0) return undefined;
    if (byte === undefined || byte === 0x0a) break;
    bytes.push(byte);
    if (bytes.length > longestBytes)
      throw new ClusterError(
        "bad-usage",
        `The line on stdin is longer than ${longestBytes} bytes.`,
      );
  }
  const line = utf8Text(Buffer.from(bytes));
  if (line === undefined)
    throw new ClusterError("bad-usage", "Some bytes of the line on stdin are not UTF-8.");
  return line.replace(/\r$/, "");
}

/** The next byte, or undefined at the end. */
async function readByte(signal: AbortSignal): Promise<number | undefined> {
  const buffer = Buffer.alloc(1);
  try {
    return (await readStdin(buffer, signal)) === 1 ? buffer[0] : undefined;
  } catch (error) {
    signal.throwIfAborted();
    throw new ClusterError("bad-usage", `Cannot read stdin: ${unreadableReason(error)}.`);
  }
}

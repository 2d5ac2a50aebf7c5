import { spawnSync } from "node:child_process";
import { read } from "node:fs";
import { ClusterError } from "../../errors.ts";
import { minimalEnvironment } from "../../system/processes/run-program.ts";
import type { Environment } from "../../system/runtime.ts";
import { plainLine } from "../../system/printable.ts";
import type { Answers } from "../context.ts";

interface Parts {
  readonly isTerminal: boolean;
  readonly environment: Environment;
  readonly ask: (prompt: string) => void;
  readonly hide: (secret: string) => void;
  /** Registers how to undo changes to the terminal if the program ends at once. */
  readonly onAbandon: (undo: () => string) => Disposable;
}

const stdin = 0;
const longestBytes = 65_536;

/** Asks questions on stderr and reads answers from stdin. A secret is not echoed on a terminal, and is masked from then on. */
export function answers(parts: Parts): Answers {
  return {
    confirm: async (question, signal) => {
      parts.ask(`${plainLine(question)} [y/N] `);
      const answer = await readLine(signal);
      if (answer === undefined) parts.ask("\n");
      return /^y(?:es)?$/i.test(answer?.trim() ?? "");
    },
    readSecret: async (prompt, signal) => {
      const secret = parts.isTerminal ? await readUnseen(prompt, parts, signal) : await readSecretLine(signal);
      parts.hide(secret);
      return secret;
    },
  };
}

async function readUnseen(prompt: string, parts: Parts, signal: AbortSignal): Promise<string> {
  const stty = (word: string): boolean =>
    spawnSync("stty", [word], { stdio: ["inherit", "ignore", "ignore"], env: minimalEnvironment(parts.environment) })
      .status === 0;
  if (!stty("-echo"))
    throw new ClusterError("machine-not-set-up", "stty cannot hide what is typed on this terminal.", {
      hint: "Pass the secret on the first line of stdin instead.",
    });
  const restore = (): string => {
    stty("echo");
    return "";
  };
  using _undo = parts.onAbandon(restore);
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
 * Returns undefined if stdin ends before a line begins. Reads byte by byte, because the rest belongs to the next reader of stdin, such as a command
 * on a node.
 */
async function readLine(signal: AbortSignal): Promise<string | undefined> {
  const bytes: number[] = [];
  for (;;) {
    const byte = await readByte(signal);
    if (byte === undefined && bytes.length === 0) return undefined;
    if (byte === undefined || byte === 0x0a) break;
    bytes.push(byte);
    if (bytes.length > longestBytes)
      throw new ClusterError("bad-usage", `The line on stdin is longer than ${longestBytes} bytes.`);
  }
  return Buffer.from(bytes).toString().replace(/\r$/, "");
}

/** The next byte, or undefined at the end. */
async function readByte(signal: AbortSignal): Promise<number | undefined> {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const onAbort = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error("aborted"));
  signal.addEventListener("abort", onAbort, { once: true });
  read(stdin, Buffer.alloc(1), 0, 1, null, (error, count, buffer) => {
    if (error?.code === "EAGAIN") setTimeout(() => resolve(readByte(signal)), 20);
    else if (error !== null && error !== undefined && error.code !== "EOF") reject(error);
    else resolve(count === 1 ? buffer[0] : undefined);
  });
  try {
    return await promise;
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

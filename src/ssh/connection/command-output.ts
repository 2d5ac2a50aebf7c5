import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { outside } from "../../outside-text.ts";
import type { CommandEnd } from "../session/held-output.ts";
import { type Mark, createMarkReader } from "../session/node-marks.ts";
import type { RemoteCommand } from "./connection.ts";
import type { CommandChannel, Link } from "./exec-channel.ts";

/** Usual limit for each stream; earlier output is dropped. */
const usuallyKept = 4 * 1024 * 1024;
/** Text this long without a newline is shown as a line anyway. */
const longestLine = 64 * 1024;

interface OutputRequest extends Pick<
  RemoteCommand,
  "onOutput" | "isOutputHidden" | "receive" | "keptCharacters"
> {
  /** See `remoteLine`. */
  readonly token: string;
}

interface CommandOutput {
  readonly stdout: () => string;
  readonly stderr: () => string;
  /** What both streams held if the command has not begun; undefined once it has. */
  readonly noise: () => string | undefined;
  /** The status with which the command has ended, as its own shell says; undefined if that says nothing. */
  readonly status: () => number | undefined;
  /** Resolves with the command's end, which may be never. */
  readonly ended: Promise<CommandEnd>;
  /** The id of the remote process group. Resolves once the node has sent it, which may be never. */
  readonly processId: Promise<number>;
  /** Settles like the command's `receive`; resolves at once without one. */
  readonly received: Promise<void>;
}

/**
 * Reads both streams of a command from now on. The output is kept for the result, passed to
 * `onOutput`, and reported line by line as progress at level 3. Output from before the command,
 * from the login shell's start-up files, is dropped.
 */
export function collectOutput(
  link: Link,
  channel: CommandChannel,
  {
    onOutput,
    isOutputHidden = false,
    receive: receiveBytes,
    keptCharacters = usuallyKept,
    token,
  }: OutputRequest,
  end: AbortSignal,
): CommandOutput {
  mergeWaiting(channel);
  mergeWaiting(channel.stderr);
  const receive = (stream: "stdout" | "stderr"): TextSink & { readonly kept: () => string } => {
    const tail = createOutputTail(keptCharacters);
    const lines = lineSplitter((line) => {
      if (!isOutputHidden) link.progress.detail(3, `${link.target.name}: ${outside(line)}`);
    });
    const add = (text: string): void => {
      if (text === "") return;
      tail.add(text);
      lines.add(text);
      const taken = onOutput?.(stream, text);
      if (taken === undefined) return;
      // A slow reader of the output slows the node's command down, instead of filling the memory.
      const source = stream === "stdout" ? channel : channel.stderr;
      source.pause();
      const resume = (): void => void source.resume();
      taken.then(resume, resume);
    };
    return { add, end: () => lines.end(), kept: () => tail.text() };
  };
  const stdout = receive("stdout");
  const stderr = receive("stderr");
  const { onMark, ...marks } = collectMarks();
  const marked = createMarkReader({ token, onMark, onOutput: stderr.add, endsAtBegin: false });
  decodeInto(channel.stderr, { add: marked.add, end: () => (marked.end(), stderr.end()) });
  const common = { stderr: stderr.kept, ...marks };
  const both = (noise: string | undefined): string | undefined =>
    noise === undefined ? undefined : noise + (marked.noise() ?? "");
  if (receiveBytes !== undefined) {
    const { noise, received } = passBytes(channel, { receive: receiveBytes, token }, end);
    return { ...common, stdout: () => "", noise: () => both(noise()), received };
  }
  const begun = createMarkReader({ token, onMark, onOutput: stdout.add, endsAtBegin: true });
  decodeInto(channel, { add: begun.add, end: () => (begun.end(), stdout.end()) });
  return {
    ...common,
    stdout: stdout.kept,
    noise: () => both(begun.noise()),
    received: Promise.resolve(),
  };
}

function collectMarks(): Pick<CommandOutput, "processId" | "ended" | "status"> & {
  readonly onMark: (mark: Mark) => void;
} {
  const processId = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<CommandEnd>();
  const state: { end?: CommandEnd } = {};
  return {
    onMark: (mark) => {
      if (mark.kind === "group") processId.resolve(mark.processId);
      else if (mark.kind === "end") ended.resolve((state.end = mark));
    },
    processId: processId.promise,
    ended: ended.promise,
    status: () => state.end?.status,
  };
}

/** Smaller chunks are merged while they wait. */
const pieceBytes = 16 * 1024;

/**
 * Merges small chunks while nobody takes them. The window limits how many bytes wait, but a node
 * may send each of them in a packet of its own, and a chunk takes a hundred times its byte.
 */
export function mergeWaiting(stream: Readable): void {
  const push = stream.push.bind(stream);
  const piece = { bytes: Buffer.alloc(0), length: 0 };
  const flush = (): void => {
    const { bytes, length } = piece;
    [piece.bytes, piece.length] = [Buffer.alloc(0), 0];
    if (length > 0) push(bytes.subarray(0, length));
  };
  const flushIfFlowing = (): void => {
    if (stream.readableFlowing === true) flush();
  };
  stream.push = (chunk: Buffer | null): boolean => {
    const isTaken = stream.readableFlowing === true && stream.readableLength + piece.length === 0;
    if (chunk === null || isTaken || chunk.length >= pieceBytes) {
      flush();
      return push(chunk);
    }
    if (piece.length + chunk.length > pieceBytes) flush();
    if (piece.length === 0) {
      piece.bytes = Buffer.allocUnsafeSlow(pieceBytes);
      queueMicrotask(flushIfFlowing);
    }
    piece.length += chunk.copy(piece.bytes, piece.length);
    return stream.readableLength + piece.length < stream.readableHighWaterMark;
  };
  stream.on("resume", flush);
}

function passBytes(
  channel: CommandChannel,
  {
    receive,
    token,
  }: { readonly receive: NonNullable<RemoteCommand["receive"]>; readonly token: string },
  end: AbortSignal,
): Pick<CommandOutput, "noise" | "received"> {
  const queue = byteQueue(channel, end);
  // In this encoding each byte is a character, so the bytes after the mark survive.
  const onOutput = (text: string): void => queue.add(Buffer.from(text, "latin1"));
  const begun = createMarkReader({ token, onMark: () => {}, onOutput, endsAtBegin: true });
  channel.on("data", (chunk: Buffer) => {
    if (begun.noise() === undefined) queue.add(chunk);
    else begun.add(chunk.toString("latin1"));
  });
  channel.on("end", queue.end).on("close", queue.end);
  return { noise: begun.noise, received: receive(queue.chunks()).then(queue.close) };
}

interface TextSink {
  add(text: string): void;
  end(): void;
}

/** Characters split between two packets are delivered whole with the second one. */
function decodeInto(stream: NodeJS.ReadableStream, sink: TextSink): void {
  const decoder = new StringDecoder("utf8");
  stream.on("data", (chunk: Buffer) => sink.add(decoder.write(chunk)));
  stream.on("end", () => {
    sink.add(decoder.end());
    sink.end();
  });
}

/** Calls back for each line, and for the parts of one that is longer than 64 Ki characters. */
export function lineSplitter(onLine: (line: string) => void): TextSink {
  const state = { rest: "" };
  const flush = (): void => {
    if (state.rest !== "") onLine(state.rest);
    state.rest = "";
  };
  return {
    add: (text) => {
      // Only the new text is searched, because it may arrive in very small pieces.
      const [first = "", ...others] = text.split("\n");
      state.rest += first;
      for (const next of others) {
        onLine(state.rest);
        state.rest = next;
      }
      if (state.rest.length > longestLine) flush();
    },
    end: flush,
  };
}

/** Shorter parts are joined, because each takes more memory than its text. */
const partCharacters = 4 * 1024;

/** Keeps the end of a text that arrives in chunks, so that a command with endless output can't fill the memory. */
export function createOutputTail(limit: number) {
  const parts: string[] = [];
  const kept = { length: 0 };
  const recent: { texts: string[]; length: number } = { texts: [], length: 0 };
  return {
    add: (text: string) => {
      recent.texts.push(text);
      recent.length += text.length;
      if (recent.length < partCharacters && recent.texts.length < partCharacters) return;
      parts.push(recent.texts.join(""));
      kept.length += recent.length;
      [recent.texts, recent.length] = [[], 0];
      for (let first = parts[0] ?? ""; kept.length - first.length > limit; first = parts[0] ?? "") {
        kept.length -= first.length;
        parts.shift();
      }
    },
    /** Returns the last `limit` characters of the text. */
    text: () => [...parts, ...recent.texts].join("").slice(-limit),
  };
}

/**
 * Bytes on their way from a channel to a reader that may be slower: the channel pauses until the
 * reader asks for more.
 */
export function byteQueue(channel: CommandChannel, signal: AbortSignal) {
  const waiting: Uint8Array[] = [];
  const state = { hasEnded: false, isClosed: false, wake: (): void => {} };
  signal.addEventListener("abort", () => state.wake(), { once: true });
  return {
    add: (chunk: Uint8Array) => {
      if (state.isClosed || chunk.length === 0) return;
      waiting.push(chunk);
      channel.pause();
      state.wake();
    },
    end: () => {
      state.hasEnded = true;
      state.wake();
    },
    /** From now on everything is dropped as it arrives. */
    close: () => {
      state.isClosed = true;
      channel.resume();
    },
    /** Fails with the signal's reason once that is aborted. */
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

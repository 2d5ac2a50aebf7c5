import { isLoss, openOutput } from "../../system/processes/output.ts";
import { orAborted } from "../../system/time-limit.ts";
import type { CommandEnd } from "./held-output.ts";
import { type Mark, createMarkReader } from "./node-marks.ts";

/** What a session's output has proved so far. */
export interface SessionProof {
  /** Whether the command has begun. */
  readonly hasBegun: () => boolean;
  /** How the command has ended; undefined until then. It may leave processes that keep the session open. */
  readonly end: () => CommandEnd | undefined;
  /** What the node has printed instead of the command's output, at most some lines. */
  readonly noise: () => string;
  /** Resolves with the command's end, which may be never. */
  readonly ended: Promise<CommandEnd>;
  /**
   * Whether the reader of stdout has gone, such as in `| head -1`. Then ssh ends before the command
   * tells how it ended.
   */
  readonly isUnread: () => boolean;
  /** Why output for stdout was lost, such as a full disk; undefined if it was not, or if its reader has gone. */
  readonly loss: () => unknown;
  /** Resolves when all output has been passed on, or nobody reads it any more. */
  readonly passed: Promise<void>;
}

interface SessionStreams {
  readonly token: string;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Where the command's output goes: this program's own streams, or open files. */
  readonly targets: readonly [stdout: "inherit" | number, stderr: "inherit" | number];
  /** Sees the output that is passed on. */
  readonly onOutput?: ((chunk: Uint8Array) => void) | undefined;
}

/**
 * Passes the command's output on, byte for byte, without what the node prints before the command,
 * and without marks. After an abort the rest is lost.
 */
export function passOutput(streams: SessionStreams, signal: AbortSignal): SessionProof {
  const { token, stdout, stderr, targets, onOutput: see = () => {} } = streams;
  const state: { end?: CommandEnd; isUnread?: boolean; loss?: unknown } = {};
  const ended = Promise.withResolvers<CommandEnd>();
  const onMark = (mark: Mark): void => {
    if (mark.kind !== "end") return;
    state.end = mark;
    ended.resolve(mark);
  };
  const read = (endsAtBegin: boolean) => {
    const texts: string[] = [];
    const onOutput = (text: string): void => void texts.push(text);
    return {
      reader: createMarkReader({ token, onMark, onOutput, endsAtBegin }),
      take: () => {
        const chunk = Buffer.from(texts.splice(0).join(""), encoding);
        see(chunk);
        return chunk;
      },
    };
  };
  const [out, err] = [read(true), read(false)];
  const to = (target: "inherit" | number, own: 1 | 2): number =>
    target === "inherit" ? own : target;
  const passed = Promise.all([
    pass(stdout, out, to(targets[0], 1), signal).catch((error: unknown) => {
      state.isUnread = true;
      if (!signal.aborted && isLoss(error)) state.loss = error;
    }),
    pass(stderr, err, to(targets[1], 2), signal).catch(() => {}),
  ]);
  return {
    hasBegun: () => out.reader.noise() === undefined,
    end: () => state.end,
    isUnread: () => state.isUnread === true,
    loss: () => state.loss,
    noise: () => (out.reader.noise() ?? "") + (err.reader.noise() ?? ""),
    ended: ended.promise,
    passed: passed.then(() => {}),
  };
}

type Filter = { readonly reader: ReturnType<typeof createMarkReader>; readonly take: () => Buffer };

/** In this encoding each byte is a character. */
const encoding = "latin1";

async function pass(
  source: ReadableStream<Uint8Array>,
  { reader, take }: Filter,
  descriptor: number,
  signal: AbortSignal,
): Promise<void> {
  using output = await openOutput(descriptor);
  const write = async (): Promise<void> => {
    for await (const chunk of source) {
      reader.add(Buffer.from(chunk).toString(encoding));
      await output.write(take());
    }
    reader.end();
    await output.write(take());
  };
  // If the reader has gone, leaving the loop closes the pipe, as ssh would see it without us.
  await orAborted(write(), signal);
}

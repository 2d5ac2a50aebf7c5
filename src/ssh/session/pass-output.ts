import { minimalEnvironment } from "../../system/processes/run-program.ts";
import type { Environment } from "../../system/runtime.ts";
import { errorCode } from "../../system/files/private-file.ts";
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
  /** Resolves when all output has been passed on, or nobody reads it any more. */
  readonly passed: Promise<void>;
}

export type CommandEnd = Extract<Mark, { kind: "end" }>;

interface SessionStreams {
  readonly token: string;
  readonly stdout: ReadableStream<Uint8Array>;
  readonly stderr: ReadableStream<Uint8Array>;
  /** Where the command's output goes: this program's own streams, or open files. */
  readonly targets: readonly [stdout: "inherit" | number, stderr: "inherit" | number];
  readonly environment: Environment;
}

/**
 * Passes the command's output on, byte for byte, without what the node prints before the command, and without marks. After an abort the rest is lost.
 */
export function passOutput(streams: SessionStreams, signal: AbortSignal): SessionProof {
  const { token, stdout, stderr, targets, environment } = streams;
  const state: { end?: CommandEnd } = {};
  const ended = Promise.withResolvers<CommandEnd>();
  const onMark = (mark: Mark): void => {
    if (mark.kind !== "end") return;
    state.end = mark;
    ended.resolve(mark);
  };
  const read = (endsAtBegin: boolean) => {
    const texts: string[] = [];
    const onOutput = (text: string): void => void texts.push(text);
    return { reader: createMarkReader({ token, onMark, onOutput, endsAtBegin }), take: () => texts.splice(0).join("") };
  };
  const [out, err] = [read(true), read(false)];
  const to = (target: "inherit" | number, own: 1 | 2) => ({ stdout: target === "inherit" ? own : target, environment });
  const passed = Promise.all([
    pass(stdout, out, to(targets[0], 1), signal),
    pass(stderr, err, to(targets[1], 2), signal),
  ]);
  return {
    hasBegun: () => out.reader.noise() === undefined,
    end: () => state.end,
    noise: () => (out.reader.noise() ?? "") + (err.reader.noise() ?? ""),
    ended: ended.promise,
    passed: passed.then(() => {}),
  };
}

interface Target {
  readonly stdout: number;
  readonly environment: Environment;
}

type Filter = { readonly reader: ReturnType<typeof createMarkReader>; readonly take: () => string };

/** In this encoding each byte is a character. */
const encoding = "latin1";

async function pass(
  source: ReadableStream<Uint8Array>,
  { reader, take }: Filter,
  target: Target,
  signal: AbortSignal,
): Promise<void> {
  await using writer = createWriter(target, signal);
  // Once nobody reads the output, the source is closed, and ssh tells the node.
  for await (const chunk of source) {
    reader.add(Buffer.from(chunk).toString(encoding));
    if (!(await writer.write(take()))) return;
  }
  reader.end();
  await writer.write(take());
}

interface Writer extends AsyncDisposable {
  /** Resolves with whether somebody still reads. */
  write(text: string): Promise<boolean>;
}

/**
 * A separate `cat` writes, because a write to a reader that has stopped reading can't be cancelled, and would keep this process alive. It starts with the
 * first output.
 */
function createWriter({ stdout, environment }: Target, signal: AbortSignal): Writer {
  const state: { cat?: Bun.Subprocess<"pipe", number, "ignore"> } = {};
  const stop = (): void => {
    state.cat?.kill("SIGKILL");
  };
  signal.addEventListener("abort", stop);
  const start = () => Bun.spawn(["cat"], { stdio: ["pipe", stdout, "ignore"], env: minimalEnvironment(environment) });
  return {
    write: async (text) => {
      if (text === "") return true;
      if (signal.aborted) return false;
      state.cat ??= start();
      try {
        await state.cat.stdin.write(Buffer.from(text, encoding));
        await state.cat.stdin.flush();
        return true;
      } catch (error) {
        if (errorCode(error) !== "EPIPE") throw error;
        return false;
      }
    },
    [Symbol.asyncDispose]: async () => {
      // Nobody may read any more.
      await Promise.resolve(state.cat?.stdin.end()).catch(() => {});
      await state.cat?.exited;
      signal.removeEventListener("abort", stop);
    },
  };
}

import type { ServerChannel } from "ssh2";
import type { ExecResult } from "./exec.ts";

/** What a root shell has done when it may end: it waits, it has a line, the line's command has begun, or has ended. */
export type RootShellMoment = "waits" | "has a line" | "has begun" | "has ended";

/** Whether a root shell ends at this moment of a line. While it waits, that is the line before, or an empty text. */
export type RootShellBreaks = (moment: RootShellMoment, line: string) => boolean;

export interface RootShellLine {
  readonly line: string;
  /** Whole once its sender has nothing to say any more. */
  readonly stdin: Promise<Buffer>;
}

interface Served {
  /** With which it was started. */
  readonly token: string;
  readonly breaks: RootShellBreaks;
  /** Prints what stands in front of the command's output, and returns the rest. */
  readonly execute: (line: RootShellLine) => Promise<ExecResult>;
}

export const rootShellToken = (command: string): string | undefined =>
  / e2e-root-shell (e2e-[0-9a-f]{32})/.exec(command)?.[1];

/** Does what src/ssh/connection/root-shell.sh does, until the shell ends or breaks. */
export async function serveRootShell(
  channel: ServerChannel,
  { token, breaks, execute }: Served,
): Promise<void> {
  const print = (text: string): void => {
    channel.write(`\u001e${token} ${text}\n`);
    channel.stderr.write(`\u001e${token} ${text}\n`);
  };
  print("begun");
  print("over 0");
  for await (const each of linesOf(channel, token)) {
    if (breaks("has a line", each.line)) break;
    const result = await execute(each);
    if (breaks("has begun", each.line)) break;
    channel.stderr.write(result.stderr);
    channel.write(result.stdout);
    if (breaks("has ended", each.line)) break;
    await each.stdin;
    print(`over ${result.status}`);
    if (breaks("waits", each.line)) break;
  }
  channel.exit("KILL" as never);
  channel.close();
}

async function* linesOf(
  channel: ServerChannel,
  token: string,
): AsyncGenerator<RootShellLine, void, void> {
  const chunks = (channel as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  const state = { rest: Buffer.alloc(0) };
  /** Takes so many bytes off the front as `find` says, once it does; undefined at the end. */
  const take = async (find: (rest: Buffer) => number | undefined): Promise<Buffer | undefined> => {
    for (;;) {
      const size = find(state.rest);
      if (size !== undefined) {
        const taken = state.rest.subarray(0, size);
        state.rest = state.rest.subarray(size);
        return taken;
      }
      const chunk = await chunks.next();
      if (chunk.done === true) return undefined;
      state.rest = Buffer.concat([state.rest, chunk.value]);
    }
  };
  const bytes = (size: number) => take((rest) => (rest.length < size ? undefined : size));
  const through = (text: string) =>
    take((rest) => (rest.includes(text) ? rest.indexOf(text) + text.length : undefined));
  for (;;) {
    const header = await through("\n");
    const [lineBytes, stdinBytes] = header?.toString().trim().split(" ") ?? [];
    const line = header && (await bytes(Number(lineBytes)));
    if (line === undefined) return;
    const last = `${token}\n`;
    const stdin = stdinBytes === "-" ? through(last) : bytes(Number(stdinBytes));
    const own = stdinBytes === "-" ? -last.length : undefined;
    yield {
      line: line.toString(),
      stdin: stdin.then((all = Buffer.alloc(0)) => all.subarray(0, own)),
    };
  }
}

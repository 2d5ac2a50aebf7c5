import type { ServerChannel } from "ssh2";
import type { ExecResult } from "./exec.ts";

/** What a root shell has done when it may end: it waits, it has a line, the line's command has begun, or has ended. */
export type RootShellMoment = "waits" | "has a line" | "has begun" | "has ended";

/** Whether a root shell ends at this moment of a line. While it waits, that is the line before, or an empty text. */
export type RootShellBreaks = (moment: RootShellMoment, line: string) => boolean;

export interface RootShellLine {
  readonly line: string;
  readonly stdin: Buffer;
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
  for await (const each of linesOf(channel)) {
    if (breaks("has a line", each.line)) break;
    const result = await execute(each);
    if (breaks("has begun", each.line)) break;
    channel.stderr.write(result.stderr);
    channel.write(result.stdout);
    if (breaks("has ended", each.line)) break;
    print(`over ${result.status}`);
    if (breaks("waits", each.line)) break;
  }
  channel.exit("KILL" as never);
  channel.close();
}

async function* linesOf(channel: ServerChannel): AsyncGenerator<RootShellLine, void, void> {
  const state = { rest: Buffer.alloc(0) };
  for await (const chunk of channel as AsyncIterable<Buffer>) {
    state.rest = Buffer.concat([state.rest, chunk]);
    const header = /^(\d+) (\d+)\n/.exec(state.rest.toString("latin1", 0, 30));
    if (header === null) continue;
    const [start, lineBytes, stdinBytes] = [header[0].length, Number(header[1]), Number(header[2])];
    const [lineEnd, end] = [start + lineBytes, start + lineBytes + stdinBytes];
    if (state.rest.length < end) continue;
    yield {
      line: state.rest.toString("utf8", start, lineEnd),
      stdin: state.rest.subarray(lineEnd, end),
    };
    state.rest = state.rest.subarray(end);
  }
}

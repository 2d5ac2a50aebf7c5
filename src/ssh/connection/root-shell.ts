import { Duplex, Readable } from "node:stream";
import { shellText } from "../shell-text.ts";
import { createMarkReader } from "../session/node-marks.ts";
import { createToken, remoteLine, sealed } from "../session/session-line.ts";
import { orAborted } from "../../system/time-limit.ts";
import { mergeWaiting } from "./command-output.ts";
import type { RemoteCommand } from "./connection.ts";
import { type CommandChannel, type Link, type RootShells, openChannel } from "./exec-channel.ts";
import rootShellText from "./root-shell.sh" with { type: "text" };

/** A pipe holds this much, so a command that leaves its stdin unread does not hold up the shell. */
export const shortStdinBytes = 60 * 1024;

/** Users' own commands, and those with long streams, get sessions of their own. */
function fitsRootShell(command: RemoteCommand): boolean {
  const { stdin = "", stdinKind } = command;
  if (command.sudo !== true || command.namesHolders === true || command.receive !== undefined)
    return false;
  if (typeof stdin === "string") return Buffer.byteLength(stdin) <= shortStdinBytes;
  return (
    stdinKind !== undefined || (stdin instanceof Uint8Array && stdin.length <= shortStdinBytes)
  );
}

/** More would leave too few of sshd's ten sessions to others; see `Link.commandSlots`. */
const shellsAtOnce = 2;

/** After `silenceMs` without a sign of the login shell, another program may be in its place, and wait for the end of its stdin. */
export function createRootShells(silenceMs: number): RootShells {
  const idle = new Set<Shell>();
  const state = { count: 0, isGivenUp: false };
  const giveUp = (): void => {
    state.isGivenUp = true;
    for (const shell of idle) shell.close();
  };
  const open = async (link: Link, signal: AbortSignal): Promise<Shell | undefined> => {
    state.count += 1;
    const token = createToken();
    const argv = ["sh", "-c", shellText(rootShellText), "e2e-root-shell", token];
    const line = remoteLine({ argv, sudo: true }, link.target.user, token);
    const ended = (shell: Shell): void => {
      idle.delete(shell);
      state.count -= 1;
    };
    const waits = (shell: Shell): void => {
      if (state.isGivenUp) shell.close();
      else idle.add(shell);
    };
    const begin = (channel: CommandChannel): Shell =>
      startShell(channel, { token, silenceMs, waits, ended });
    const shell = await openChannel(link, line, begin, signal).catch(() => {
      state.count -= 1;
      return undefined;
    });
    signal.throwIfAborted();
    if (shell === undefined) return undefined;
    const hasBegun = await orAborted(shell.hasBegun, signal).catch((error: unknown) => {
      shell.close();
      throw error;
    });
    return hasBegun ? shell : undefined;
  };
  return {
    take: async (link, command, signal) => {
      if (state.isGivenUp || !fitsRootShell(command)) return undefined;
      const [first] = idle;
      if (first === undefined && state.count >= shellsAtOnce) return undefined;
      const shell = first ?? (await open(link, signal));
      // A command in a session of its own explains what keeps it from beginning.
      if (shell === undefined) {
        giveUp();
        return undefined;
      }
      idle.delete(shell);
      return shell.execOf(command);
    },
    giveUp,
  };
}

interface Shell {
  /** Whether it waits for a first line; false if it has ended instead, or shows no sign of life. */
  readonly hasBegun: Promise<boolean>;
  readonly execOf: (command: RemoteCommand) => Link["exec"];
  close(): void;
}

interface ShellUse {
  readonly token: string;
  readonly silenceMs: number;
  /** Called when it waits for a further line. */
  readonly waits: (shell: Shell) => void;
  readonly ended: (shell: Shell) => void;
}

type Streams = Readonly<Record<"stdout" | "stderr", Readable>>;

function startShell(channel: CommandChannel, { token, silenceMs, waits, ended }: ShellUse): Shell {
  const begun = Promise.withResolvers<boolean>();
  const state: { running?: CommandView; over: number; isOpen: boolean } = { over: 0, isOpen: true };
  const sources: Streams = { stdout: channel, stderr: channel.stderr };
  const close = (): void => channel.close();
  const silence = setTimeout(() => {
    channel.end();
    begun.resolve(false);
  }, silenceMs);
  const shell: Shell = {
    hasBegun: begun.promise,
    execOf:
      ({ stdinKind }) =>
      (line, onAnswer) => {
        if (!state.isOpen) return onAnswer(new Error("the root shell has ended"), undefined);
        const stdin = (stdinKind === "lines" ? stdinOfLines : wholeStdin)(channel, line, token);
        state.running = viewOf(sources, stdin, close);
        return onAnswer(undefined, state.running.channel);
      },
    close,
  };
  const oneOver = (status: number): void => {
    state.over += 1;
    if (state.over < 2) return;
    state.over = 0;
    const { running } = state;
    if (running === undefined) return begun.resolve(true);
    delete state.running;
    waits(shell);
    running.finish(status);
  };
  for (const name of ["stdout", "stderr"] as const) {
    // In this encoding each byte is a character, so bytes that are no text survive.
    const reader = createMarkReader({
      token,
      endsAtBegin: false,
      onMark: (mark) => {
        clearTimeout(silence);
        if (mark.kind === "over") oneOver(mark.status);
      },
      onOutput: (text) => state.running?.add(name, Buffer.from(text, "latin1")),
    });
    mergeWaiting(sources[name]);
    sources[name].on("data", (chunk: Buffer) => reader.add(chunk.toString("latin1")));
  }
  channel.on("error", () => {});
  channel.on("close", () => {
    clearTimeout(silence);
    state.isOpen = false;
    ended(shell);
    begun.resolve(false);
    state.running?.lose();
  });
  return shell;
}

/** One command of a shell, as a channel of its own. */
interface CommandView {
  readonly channel: CommandChannel;
  add(name: keyof Streams, bytes: Buffer): void;
  finish(status: number): void;
  /** The shell has ended before the command, or has not said how that ended. */
  lose(): void;
}

/** Sends a line to a shell, and the line's stdin. */
interface StdinSink {
  add(chunk: Buffer): void;
  end(): void;
}

const sentLine = (line: string, token: string, size: number | "-"): Buffer => {
  const text = Buffer.from(sealed(`${line}\n`, token));
  return Buffer.concat([Buffer.from(`${text.length} ${size}\n`), text]);
};

function wholeStdin(channel: CommandChannel, line: string, token: string): StdinSink {
  const chunks: Buffer[] = [];
  return {
    add: (chunk) => void chunks.push(chunk),
    end: () => {
      const stdin = Buffer.concat(chunks);
      channel.write(Buffer.concat([sentLine(line, token, stdin.length), stdin]));
    },
  };
}

function stdinOfLines(channel: CommandChannel, line: string, token: string): StdinSink {
  channel.write(sentLine(line, token, "-"));
  return {
    add: (chunk) => void channel.write(chunk),
    end: () => void channel.write(`${token}\n`),
  };
}

function viewOf(sources: Streams, stdin: StdinSink, close: () => void): CommandView {
  const stderr = new Readable({ read: () => void sources.stderr.resume() });
  const stdout = new Duplex({
    read: () => void sources.stdout.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      stdin.add(chunk);
      done();
    },
    final: (done) => {
      stdin.end();
      done();
    },
  });
  const channel: CommandChannel = Object.assign(stdout, { stderr, close });
  const streams: Streams = { stdout: channel, stderr };
  return {
    channel,
    add: (name, bytes) => {
      if (!streams[name].push(bytes)) sources[name].pause();
    },
    finish: (status) => {
      channel.emit("exit", status);
      channel.push(null);
      stderr.push(null);
    },
    lose: () => {
      stderr.push(null);
      channel.destroy();
    },
  };
}

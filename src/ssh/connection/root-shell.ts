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
export function fitsRootShell(command: RemoteCommand): boolean {
  const { stdin = "", isStdinShort = false } = command;
  if (command.sudo !== true || command.namesHolders === true || command.receive !== undefined)
    return false;
  if (typeof stdin === "string") return Buffer.byteLength(stdin) <= shortStdinBytes;
  return isStdinShort || (stdin instanceof Uint8Array && stdin.length <= shortStdinBytes);
}

/** More would leave too few of sshd's ten sessions to others; see `Link.commandSlots`. */
const shellsAtOnce = 2;

export function createRootShells(): RootShells {
  const idle = new Set<Shell>();
  const state = { count: 0, hasProof: false, isGivenUp: false };
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
    const begin = (channel: CommandChannel): Shell => startShell(channel, { token, waits, ended });
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
    take: async (link, signal) => {
      if (!state.hasProof || state.isGivenUp) return undefined;
      const [first] = idle;
      if (first === undefined && state.count >= shellsAtOnce) return undefined;
      const shell = first ?? (await open(link, signal));
      // A command in a session of its own explains what keeps it from beginning.
      if (shell === undefined) {
        giveUp();
        return undefined;
      }
      idle.delete(shell);
      return shell.exec;
    },
    allow: () => {
      state.hasProof = true;
    },
    giveUp,
  };
}

interface Shell {
  /** Whether it waits for a first line; false if it has ended instead. */
  readonly hasBegun: Promise<boolean>;
  readonly exec: Link["exec"];
  close(): void;
}

interface ShellUse {
  readonly token: string;
  /** Called when it waits for a further line. */
  readonly waits: (shell: Shell) => void;
  readonly ended: (shell: Shell) => void;
}

type Streams = Readonly<Record<"stdout" | "stderr", Readable>>;

function startShell(channel: CommandChannel, { token, waits, ended }: ShellUse): Shell {
  const begun = Promise.withResolvers<boolean>();
  const state: { running?: CommandView; over: number; isOpen: boolean } = { over: 0, isOpen: true };
  const sources: Streams = { stdout: channel, stderr: channel.stderr };
  const close = (): void => channel.close();
  const shell: Shell = {
    hasBegun: begun.promise,
    exec: (line, onAnswer) => {
      if (!state.isOpen) return onAnswer(new Error("the root shell has ended"), undefined);
      const send = (stdin: Buffer): void => {
        const text = Buffer.from(sealed(`${line}\n`, token));
        channel.write(
          Buffer.concat([Buffer.from(`${text.length} ${stdin.length}\n`), text, stdin]),
        );
      };
      state.running = viewOf(sources, { send, close });
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
      onMark: (mark) => mark.kind === "over" && oneOver(mark.status),
      onOutput: (text) => state.running?.add(name, Buffer.from(text, "latin1")),
    });
    mergeWaiting(sources[name]);
    sources[name].on("data", (chunk: Buffer) => reader.add(chunk.toString("latin1")));
  }
  channel.on("error", () => {});
  channel.on("close", () => {
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

function viewOf(
  sources: Streams,
  { send, close }: { readonly send: (stdin: Buffer) => void; readonly close: () => void },
): CommandView {
  const stdin: Buffer[] = [];
  const stderr = new Readable({ read: () => void sources.stderr.resume() });
  const stdout = new Duplex({
    read: () => void sources.stdout.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      stdin.push(chunk);
      done();
    },
    final: (done) => {
      send(Buffer.concat(stdin));
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

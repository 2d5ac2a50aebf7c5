import { ClusterError } from "../../errors.ts";
import { outside } from "../../outside-text.ts";
import { retry } from "../../system/retry.ts";
import { eitherSignal, orAborted, timeLimit } from "../../system/time-limit.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import {
  createToken,
  endGroupCommand,
  endGroupLine,
  remoteLine,
  shownLine,
} from "../session/session-line.ts";
import { noteHeldOutput } from "../session/held-output.ts";
import { collectOutput } from "./command-output.ts";
import { connectionLost, endUnknown } from "./connection-errors.ts";
import type { RemoteCommand, RemoteResult } from "./connection.ts";
import { type CommandChannel, type Link, feed, openChannel } from "./exec-channel.ts";
import { fitsRootShell } from "./root-shell.ts";

const endingGraceMs = 1_000;
/** Includes the login. */
const anotherLoginMs = 5_000;

/** `Connection.run` over an open link. */
export async function runOverLink(
  link: Link,
  command: RemoteCommand,
  signal: AbortSignal,
): Promise<RemoteResult> {
  const { limitMs } = command;
  using limit =
    limitMs === undefined ? undefined : timeLimit(limitMs, limitPassed(link, command, limitMs));
  using end = eitherSignal([signal, link.lost, ...(limit === undefined ? [] : [limit.signal])]);
  return await link.commandSlots.run(async () => {
    link.progress.detail(
      2,
      `${link.target.name}: $ ${outside(shownLine(command, link.target.user))}`,
    );
    const token = createToken();
    const follow = (channel: CommandChannel) => ({
      result: followCommand(link, { command, channel, token }, end.signal),
    });
    const open = async (openSignal: AbortSignal) => {
      const exec = fitsRootShell(command)
        ? await link.rootShells?.take(link, openSignal)
        : undefined;
      if (exec !== undefined)
        return openChannel(
          { ...link, exec },
          remoteLine(command, "root", token),
          follow,
          openSignal,
        );
      const line = remoteLine(command, link.target.user, token);
      return openChannel(link, line, follow, openSignal).catch((error: unknown) => {
        // The sessions that it lacks may be those of shells.
        link.rootShells?.giveUp();
        throw error;
      });
    };
    const { result } = await retry(open, ruleOf(waits.session, link.clock), end.signal);
    return await result;
  }, end.signal);
}

async function followCommand(
  link: Link,
  running: {
    readonly command: RemoteCommand;
    readonly channel: CommandChannel;
    readonly token: string;
  },
  end: AbortSignal,
): Promise<RemoteResult> {
  const { command, channel, token } = running;
  const output = collectOutput(link, channel, { ...command, token }, end);
  const ended = exitStatus(link, channel, end);
  using _held =
    command.namesHolders === true
      ? noteHeldOutput({
          ...link,
          name: link.target.name,
          ended: output.ended,
          run: async (other, signal) => runOverLink(link, other, signal),
        })
      : undefined;
  try {
    const fed = feed(channel, stdinChunks(command.stdin), end);
    // A command may end without reading all of its stdin; a failing source ends the command.
    const [exit] = await Promise.all([
      Promise.race([ended, fed.then(() => ended)]),
      output.received,
    ]);
    const noise = output.noise();
    if (noise !== undefined) throw await link.explain(link, { status: exit, output: noise }, end);
    link.rootShells?.allow();
    // Another program may have run the command, and ended with a status of its own.
    const status = output.status() ?? exit;
    if (output.status() === undefined && exit === 0) throw endUnknown(link.target);
    return { status, stdout: output.stdout(), stderr: output.stderr() };
  } catch (error) {
    await endGroup(link, output.processId, command.sudo === true && link.target.user !== "root");
    channel.close();
    // Whatever receives the output must have stopped before the caller goes on.
    await output.received.catch(() => {});
    throw error;
  }
}

function exitStatus(link: Link, channel: CommandChannel, end: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(end.reason);
    const seen: { status?: number } = {};
    channel.on("exit", (code: number | null, signalName?: string) => {
      seen.status = code ?? 128 + (signalNumbers[signalName ?? ""] ?? 0);
    });
    const onEnd = (): void => {
      end.removeEventListener("abort", onAbort);
      if (seen.status === undefined) reject(connectionLost(link.target, undefined));
      else resolve(seen.status);
    };
    // ssh2 waits until stdout has been read, but not for stderr.
    channel.on("close", () => {
      const { stderr } = channel;
      if (stderr.readableEnded || stderr.destroyed) onEnd();
      else stderr.once("end", onEnd);
    });
    // Happens if the other side closes the channel while a write is on its way. The close event covers it.
    channel.on("error", () => {});
    if (end.aborted) onAbort();
    else end.addEventListener("abort", onAbort, { once: true });
  });
}

/** The numbers on Linux, which nodes run. https://man7.org/linux/man-pages/man7/signal.7.html (x86 and ARM) */
const signalNumbers: Readonly<Record<string, number>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGILL: 4,
  SIGTRAP: 5,
  SIGABRT: 6,
  SIGBUS: 7,
  SIGFPE: 8,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGSEGV: 11,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
};

async function* stdinChunks(stdin: RemoteCommand["stdin"]): AsyncGenerator<Uint8Array, void, void> {
  if (stdin === undefined) return;
  if (typeof stdin === "string") yield Buffer.from(stdin);
  else if (stdin instanceof Uint8Array) yield stdin;
  else yield* stdin;
}

/**
 * Best effort, with a time limit. sshd doesn't end a command whose channel was closed, so this ends
 * its process group through another channel, or through another connection if this one has no
 * session left.
 */
async function endGroup(link: Link, groupId: Promise<number>, asRoot: boolean): Promise<void> {
  if (link.lost.aborted) return;
  const quickly = AbortSignal.timeout(endingGraceMs);
  try {
    const processId = await orAborted(groupId, quickly);
    await endHere(link, endGroupLine(processId, asRoot), quickly).catch(async () => {
      await endFromElsewhere(link, processId, asRoot);
    });
  } catch {
    link.progress.detail(2, `${link.target.name}: the command may still be running`);
  }
}

async function endHere(link: Link, line: string, limit: AbortSignal): Promise<void> {
  using either = eitherSignal([link.lost, limit]);
  const { signal } = either;
  const follow = (channel: CommandChannel) => {
    channel.resume().stderr.resume();
    return { ended: exitStatus(link, channel, signal) };
  };
  await link.endingSlots.run(async () => {
    const { ended } = await openChannel(link, line, follow, signal);
    await ended;
  }, signal);
}

async function endFromElsewhere(link: Link, processId: number, asRoot: boolean): Promise<void> {
  const grace = AbortSignal.timeout(anotherLoginMs);
  await using connection = await link.openAnother(grace);
  await connection.run({ argv: endGroupCommand(processId), sudo: asRoot }, grace);
}

function limitPassed(link: Link, command: RemoteCommand, limitMs: number): ClusterError {
  const task = command.task ?? `"${command.argv.slice(0, 2).join(" ")}"`;
  const message = `${link.target.name}: ${task} did not finish within ${limitMs / 1000} s.`;
  return new ClusterError("deadline-passed", message, {
    hint: "The node hangs or is very slow. Try again, and check its console output and logs for the cause.",
    facts: { node: link.target.name, limitMs },
  });
}

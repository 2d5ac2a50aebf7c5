import { createSemaphore } from "../../system/concurrency.ts";
import type { Runtime } from "../../system/runtime.ts";
import { NoSession, openMasterSession } from "../session/master-session.ts";
import { type Destination, type RemoteCommand, type RemoteResult, targetOf } from "./connection.ts";
import type { Link } from "./exec-channel.ts";
import { runOverLink } from "./run-over-link.ts";

/**
 * Runs a command like `Connection.run`, over the master connection with this socket. Resolves with undefined if that opens no session, or if the
 * node's shell does not begin the command.
 */
export async function runOverMaster(
  socketPath: string,
  node: Destination,
  {
    command,
    runtime: { clock, progress },
  }: { readonly command: RemoteCommand; readonly runtime: Runtime },
  signal: AbortSignal,
): Promise<RemoteResult | undefined> {
  using sessions = new DisposableStack();
  const open = async () => {
    const session = await openMasterSession(socketPath);
    // Too late to end a command.
    if (sessions.disposed) session[Symbol.dispose]();
    return sessions.disposed
      ? Promise.reject(new NoSession("The command is over."))
      : sessions.use(session);
  };
  const opened = await open().catch(ifNoSession);
  if (opened === undefined) return undefined;
  const sessionsLeft = [opened];
  const link: Link = {
    exec: (line, onAnswer) => {
      const ready = sessionsLeft.pop();
      if (ready !== undefined) return onAnswer(undefined, ready.exec(line));
      // Only to end a command that was given up, or to ask who holds its output.
      open().then(
        (session) => onAnswer(undefined, session.exec(line)),
        (error: unknown) =>
          onAnswer(error instanceof Error ? error : new Error(String(error)), undefined),
      );
    },
    explain: async () => new NoSession("The command has not begun."),
    target: targetOf(node),
    clock,
    progress,
    lost: new AbortController().signal,
    commandSlots: createSemaphore(2),
    endingSlots: createSemaphore(1),
    openAnother: () => Promise.reject(new NoSession("There is no other login.")),
  };
  return await runOverLink(link, command, signal).catch(ifNoSession);
}

function ifNoSession(error: unknown): undefined {
  if (!(error instanceof NoSession)) throw error;
}

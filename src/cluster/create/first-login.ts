import type { Creation } from "../../backend/contract.ts";
import { ClusterError, messageOf, revised } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { makeFirstContact, systemHostKeyLocation } from "../../ssh/first-contact.ts";
import { createKnownHosts } from "../../ssh/openssh-files.ts";
import { creationFiles } from "../../store/creation-folder.ts";
import { readOwnText } from "../../system/files/read-text.ts";
import { type Runtime, type Work, passedMs } from "../../system/runtime.ts";

interface FirstLogins {
  readonly directory: string;
  readonly connections: ConnectionPool;
  readonly creation: Pick<Creation, "firstLogin">;
  /** The time of `passedMs` at which the creation gives up. */
  readonly deadlineMs: number;
  /**
   * Whether the node must accept other logins at once: nothing is installed, which would take
   * longer than sshd's switch to its own host key.
   */
  readonly untilSwitched: boolean;
}

/**
 * Returns a function that logs in to a new machine: it makes first contact, adds the connection to
 * the pool, and waits for the end of the first boot.
 */
export async function firstLogin(
  logins: FirstLogins,
  runtime: Runtime,
): Promise<(node: NodeRecord, signal: AbortSignal) => Promise<void>> {
  const { connections, creation } = logins;
  const files = creationFiles(logins.directory);
  const privateKey = await readOwnText(files.privateKey);
  const knownHosts = createKnownHosts(files.knownHosts);
  const { clock, progress } = runtime;
  return async (node, signal) => {
    const name = nodeReference(node);
    using step = progress.start("Boot", name);
    const { firstLogin: first } = creation;
    const { publicKey: firstHostKey, isPrivate } = first.hostKey(node);
    try {
      const connection = await makeFirstContact(
        {
          destination: node,
          privateKey,
          firstHostKey,
          knownHosts,
          hostKeyLocation: isPrivate ? undefined : systemHostKeyLocation,
          untilSwitched: logins.untilSwitched,
          everyMs: first.everyMs,
          clock,
          deadlineMs: logins.deadlineMs,
          quietMs: first.limitMs,
          sign: first.sign && (async () => (await first.sign?.(node)) ?? ""),
          progress,
        },
        signal,
      );
      connections.adopt(node, connection);
      await first.finishBoot?.(node, connection, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw await explained({ ...runtime, signal }, error, { name, logins });
    }
    step.done();
  };
}

/** Explains why a machine never answered: something may block the way to it, or the creation's time is over. */
async function explained(
  { clock, signal }: Work,
  error: unknown,
  { name, logins }: { readonly name: string; readonly logins: FirstLogins },
): Promise<unknown> {
  if (!(error instanceof ClusterError) || error.id !== "connection-failed") return error;
  const cause = await logins.creation.firstLogin.whyUnreachable?.(signal);
  if (cause !== undefined)
    return revised(error, { message: `${messageOf(error)} ${cause.reason}`, hint: cause.hint });
  if (passedMs(clock) + longestPauseMs < logins.deadlineMs) return error;
  return new ClusterError(
    "deadline-passed",
    `Cannot log in to ${name} within the creation's time limit: ${messageOf(error)}`,
    {
      hint: `Allow more time with ${optionName("timeout")}; the console output in the saved logs may show the cause.`,
      facts: error.facts,
      cause: error,
    },
  );
}

/** First contact gives up if the next attempt would come after the deadline, so it may end this much earlier. */
const longestPauseMs = 2_000;

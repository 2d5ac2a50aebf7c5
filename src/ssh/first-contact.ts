import { ClusterError, messageOf } from "../errors.ts";
import { outsideReason } from "../system/printable.ts";
import { retry } from "../system/retry.ts";
import { type Runtime, passedMs } from "../system/runtime.ts";
import { waits } from "../system/waits.ts";
import { hostKeyChanged } from "./connection/connection-errors.ts";
import {
  commandLimitMs,
  type Connection,
  type Destination,
  targetOf,
} from "./connection/connection.ts";
import { openConnection } from "./connection/open-connection.ts";
import { readPublicKey } from "./keys.ts";
import type { KnownHosts } from "./openssh-files.ts";
import replaceHostKeyFile from "./replace-host-key.sh" with { type: "text" };
import { shellText } from "./shell-text.ts";

export interface FirstContact extends Pick<Runtime, "clock" | "progress"> {
  readonly destination: Destination;
  /** The cluster's login key, in OpenSSH or PEM format. */
  readonly privateKey: string;
  /** The public half of the host key that the node boots with: `ssh-ed25519 AAAA…`. */
  readonly firstHostKey: string;
  readonly knownHosts: KnownHosts;
  /** Where the node gets a key of its own. Undefined: it keeps its first key, which nobody else can know. */
  readonly hostKeyLocation: HostKeyLocation | undefined;
  /** Whether to return only a connection on which the node presented its own key. Sshd takes a moment to switch. */
  readonly untilSwitched: boolean;
  /** The time of `passedMs` after which no further try begins. */
  readonly deadlineMs: number;
  /**
   * The time, in milliseconds, after which no further try begins if the node shows nothing new
   * meanwhile. Default: only the deadline counts.
   */
  readonly quietMs?: number | undefined;
  /** What else shows that the node is still booting. It changes as long as it is. */
  readonly sign?: (() => Promise<string>) | undefined;
  /** The longest pause between two tries, in milliseconds. */
  readonly everyMs: number;
}

/**
 * Waits until a new node accepts our login, lets it make a host key of its own unless it keeps its first one, pins that
 * key, and returns a connection to the node. Rejects with the last `connection-failed` after the deadline, and at once
 * with `host-key-changed` if the node presents or announces a key that isn't its own.
 *
 * Possible states, including those that a run after a crash finds:
 *
 * | pinned here | node presents | meaning                                         | action                                                     |
 * |-------------|---------------|-------------------------------------------------|------------------------------------------------------------|
 * | nothing     | the first key | a new node, or a crash before pinning           | make the key (or find it already made), pin, switch        |
 * | nothing     | the first key | a new node that keeps it                        | pin                                                        |
 * | its own key | the first key | a crash after pinning, before sshd has switched | switch if the node announces the pinned key; log in again  |
 * | its own key | its own key   | everything was done                             | nothing                                                    |
 * | anything    | another key   | not our machine                                 | `host-key-changed`                                         |
 *
 * The node switches only after the pin is on this machine's disk, so its own key is never presented before it is
 * pinned. If processes on the node can read the first key, trust in it is limited. It is accepted only here, during the
 * creation. Once a key is pinned, the first key only serves to finish the switch, and no connection made with it is
 * returned. The pool accepts only the pinned key.
 */
export async function makeFirstContact(
  contact: FirstContact,
  signal: AbortSignal,
): Promise<Connection> {
  const { name } = targetOf(contact.destination);
  const progress: SwitchProgress = { refusals: [], hasReloaded: false };
  const last = { message: "", sign: "" };
  const { clock, quietMs = Infinity } = contact;
  const limitMs = contact.deadlineMs - passedMs(clock);
  const meet = async (attemptSignal: AbortSignal): Promise<Connection> => {
    try {
      return await tryToMeet(contact, progress, attemptSignal);
    } catch (error) {
      last.sign = `${messageOf(error)}\n${(await contact.sign?.()) ?? ""}`;
      throw error;
    }
  };
  return await retry(
    meet,
    {
      clock,
      deadlineMs: clock.now() + Math.min(limitMs, quietMs),
      latestMs: clock.now() + limitMs,
      seen: () => last.sign,
      pauseMs: (failures) =>
        Math.min(contact.everyMs, waits.firstContact.pauseMs(failures)) *
        (0.8 + Math.random() * 0.4),
      onFailure: (error) => {
        const message = messageOf(error);
        if (message !== last.message) contact.progress.detail(2, `${name}: not yet: ${message}`);
        last.message = message;
      },
    },
    signal,
  );
}

/** The user's authorized keys may appear a little later than the user; after that a refusal is final. */
const mostRefusals = 5;
/** The key must appear within this many characters. */
const mostCharacters = 64 * 1024;

/** How far one call has come with the node's switch to its own key. */
interface SwitchProgress {
  readonly refusals: ClusterError[];
  /** Whether sshd has been reloaded. Once is enough, because each time it may refuse connections for a moment. */
  hasReloaded: boolean;
}

async function tryToMeet(
  contact: FirstContact,
  progress: SwitchProgress,
  signal: AbortSignal,
): Promise<Connection> {
  const { host, port } = contact.destination.ssh;
  const pinned = await contact.knownHosts.expected(host, port);
  const first = readPublicKey(contact.firstHostKey, "ssh-ed25519");
  if (first === undefined) throw new TypeError("The first host key is not an ed25519 public key");
  const mayPresentFirst = pinned === undefined || contact.hostKeyLocation !== undefined;
  const shown: { key?: Buffer } = {};
  const connection = await openConnection(
    {
      ...targetOf(contact.destination),
      privateKey: contact.privateKey,
      hostKeys: [...(pinned === undefined ? [] : [pinned]), ...(mayPresentFirst ? [first] : [])],
      laterHostKeys: async () => [(await contact.knownHosts.expected(host, port)) ?? first],
      onHostKey: (key) => {
        shown.key = key;
      },
      connectTimeoutMs: 3_000,
      authenticationMayComeLater: true,
      clock: contact.clock,
      progress: contact.progress,
    },
    signal,
  );
  if (pinned !== undefined && shown.key?.equals(pinned)) return connection;
  try {
    const { hostKeyLocation } = contact;
    if (hostKeyLocation === undefined) {
      await contact.knownHosts.pin(host, port, first);
      return connection;
    }
    if (!progress.hasReloaded)
      await replaceHostKey(contact, { connection, hostKeyLocation, pinned, progress }, signal);
    // Anyone can announce a public key. Only a login proves that the node has the private half.
    if (pinned !== undefined || contact.untilSwitched) throw notYetSwitched(contact);
    return connection;
  } catch (error) {
    await connection[Symbol.asyncDispose]();
    throw error;
  }
}

interface Replacement {
  readonly connection: Connection;
  readonly hostKeyLocation: HostKeyLocation;
  /** The key that the node must announce; undefined if it may announce any. */
  readonly pinned: Buffer | undefined;
  readonly progress: SwitchProgress;
}

async function replaceHostKey(
  contact: FirstContact,
  { connection, hostKeyLocation, pinned: expected, progress }: Replacement,
  signal: AbortSignal,
): Promise<void> {
  const { folder, reload } = hostKeyLocation;
  const { host, port } = contact.destination.ssh;
  const announced = Promise.withResolvers<Buffer>();
  const pinned = announced.promise.then(async (key) => {
    if (expected === undefined) return await contact.knownHosts.pin(host, port, key);
    if (!key.equals(expected)) throw hostKeyChanged(targetOf(contact.destination), [expected], key);
  });
  const switchOncePinned = async function* (): AsyncGenerator<Uint8Array, void, void> {
    await pinned;
    yield Buffer.from("switch\n");
  };
  const printed = { text: "" };
  const result = await connection.run(
    {
      argv: ["sh", "-c", shellText(replaceHostKeyFile), "e2e-first-contact", folder, reload],
      sudo: true,
      stdin: switchOncePinned(),
      limitMs: commandLimitMs,
      task: "replacing its host key",
      onOutput: (stream, chunk) => {
        if (stream !== "stdout" || printed.text.length >= mostCharacters) return;
        printed.text += chunk;
        const key = findPublicKey(printed.text);
        if (key !== undefined) announced.resolve(key);
      },
    },
    signal,
  );
  const isAnnounced = findPublicKey(printed.text) !== undefined;
  if (isAnnounced) await pinned;
  progress.hasReloaded = isAnnounced && result.status === 0;
  if (progress.hasReloaded) return;
  const refusal = replacementFailed(
    contact,
    result.stderr,
    progress.refusals.length < mostRefusals,
  );
  progress.refusals.push(refusal);
  throw refusal;
}

/** Only whole lines count. A login shell may have printed other text first. */
function findPublicKey(text: string): Buffer | undefined {
  const lines = text.split("\n").slice(0, -1);
  return lines.map((line) => readPublicKey(line, "ssh-ed25519")).find((key) => key !== undefined);
}

function notYetSwitched({ destination }: FirstContact): ClusterError {
  const { name } = targetOf(destination);
  const message = `${name} still presented its first host key instead of the pinned one.`;
  return new ClusterError("connection-failed", message, { transient: true, facts: { node: name } });
}

function replacementFailed(
  { destination }: FirstContact,
  stderr: string,
  transient: boolean,
): ClusterError {
  const { name } = targetOf(destination);
  const reason = outsideReason(stderr) || "the cause is not known";
  return new ClusterError(
    "remote-command-failed",
    `Cannot give ${name} its own host key: ${reason}.`,
    {
      hint: "Its disk may be full, or its image may differ too much from the distribution: choose another image, or try again.",
      transient,
      facts: { node: name },
    },
  );
}

/** Where a node's sshd keeps its host keys, and how to make it read them again. */
export interface HostKeyLocation {
  readonly folder: string;
  /** A shell line, run as root. It must not end open sessions. */
  readonly reload: string;
}

/** Correct for all supported distributions: Debian and Ubuntu call the unit ssh, the others sshd. */
export const systemHostKeyLocation: HostKeyLocation = {
  folder: "/etc/ssh",
  reload: "systemctl reload ssh.service 2>/dev/null || systemctl reload sshd.service",
};

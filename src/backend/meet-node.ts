import { readFile } from "node:fs/promises";
import { nodeReference, type NodeRecord } from "../model/cluster-record.ts";
import { ClusterError } from "../errors.ts";
import type { Connection } from "../ssh/connection.ts";
import { meetNode } from "../ssh/first-contact.ts";
import { systemHostKeyPlace } from "../ssh/host-key-place.ts";
import { createKnownHosts } from "../ssh/known-hosts.ts";
import type { ConnectionPool } from "../ssh/pool.ts";
import { creationFiles } from "../system/creation-folder.ts";
import type { Surroundings } from "./backend.ts";
import type { FirstHostKeys } from "./first-host-keys.ts";

/** Images that boot slowly need some minutes. */
const usualLoginLimitMs = 10 * 60_000;

export interface Introduction {
  readonly directory: string;
  readonly connections: ConnectionPool;
  /** What the machines were given before they booted. */
  readonly firstHostKeys: FirstHostKeys;
  readonly deadlineMs: number;
  /** Milliseconds from the moment a machine has its address until it lets us in; absent: as machines usually need. */
  readonly loginLimitMs?: number;
  /** What is awaited on a machine once it lets us in. */
  readonly firstBoot: (connection: Connection, name: string, signal: AbortSignal) => Promise<void>;
  /** What may be the reason why a machine never answered, and what to do; `undefined`: nothing is known. */
  readonly silence: (signal: AbortSignal) => Promise<{ readonly reason: string; readonly hint: string } | undefined>;
  readonly onNode: (node: NodeRecord) => void;
}

/**
 * Makes the way in to one new machine after another: first contact, the end of its first boot, its connection into the pool; then `onNode`.
 */
export async function openIntroduction(
  introduction: Introduction,
  surroundings: Surroundings,
): Promise<(node: NodeRecord, signal: AbortSignal) => Promise<void>> {
  const files = creationFiles(introduction.directory);
  const privateKey = await readFile(files.privateKey, "utf8");
  const knownHosts = createKnownHosts(files.knownHosts);
  const { clock, progress } = surroundings;
  return async (node, signal) => {
    const name = nodeReference(node);
    using step = progress.start("Boot", name);
    const limitMs = introduction.loginLimitMs ?? usualLoginLimitMs;
    const deadlineMs = Math.min(introduction.deadlineMs, clock.now() + limitMs);
    const firstHostKey = introduction.firstHostKeys.of(node).publicKey;
    const contact = { destination: node, privateKey, firstHostKey, knownHosts };
    try {
      const connection = await meetNode(
        { ...contact, hostKeyPlace: systemHostKeyPlace, clock, deadlineMs, progress },
        signal,
      );
      introduction.connections.adopt(node, connection);
      await introduction.firstBoot(connection, name, signal);
    } catch (error) {
      signal.throwIfAborted();
      throw await explained(error, { name, introduction }, surroundings, signal);
    }
    step.done();
    introduction.onNode(node);
  };
}

/** A machine that never answered: perhaps something keeps it from us, or the creation's time is over. */
async function explained(
  error: unknown,
  { name, introduction }: { readonly name: string; readonly introduction: Introduction },
  { clock }: Surroundings,
  signal: AbortSignal,
): Promise<unknown> {
  if (!(error instanceof ClusterError) || error.id !== "connection-failed") return error;
  const { facts } = error;
  const silence = await introduction.silence(signal);
  if (silence !== undefined) {
    const { reason, hint } = silence;
    return new ClusterError(error.id, `${error.message} ${reason}`, { hint, facts, cause: error });
  }
  if (clock.now() + longestPauseMs < introduction.deadlineMs) return error;
  return new ClusterError(
    "deadline-passed",
    `${name} did not let us in before the creation's limit: ${error.message}`,
    {
      hint: "Give it more time with --timeout; the console output among the evidence may say more.",
      facts,
      cause: error,
    },
  );
}

/** First contact gives up when its next try would come after the deadline: a little before it. */
const longestPauseMs = 2_000;

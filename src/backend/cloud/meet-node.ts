import { readFile } from "node:fs/promises";
import { nodeReference, type NodeRecord } from "../../cluster/record.ts";
import { ClusterError } from "../../errors.ts";
import { meetNode } from "../../ssh/first-contact.ts";
import { systemHostKeyPlace } from "../../ssh/host-key-place.ts";
import { createKnownHosts } from "../../ssh/known-hosts.ts";
import type { ConnectionPool } from "../../ssh/pool.ts";
import { creationFiles } from "../../system/creation-folder.ts";
import type { Surroundings } from "../backend.ts";
import { awaitFirstBoot } from "../first-boot.ts";
import { silenceText } from "./silence.ts";

/** From the moment a machine has its address until it lets us in. Images that boot slowly need some minutes. */
const loginLimitMs = 10 * 60_000;

export interface Introduction {
  readonly directory: string;
  readonly connections: ConnectionPool;
  /** The public half of the host key in the user data. */
  readonly firstHostKey: string;
  readonly deadlineMs: number;
  /** The address ranges that the cluster's rules let in. */
  readonly cidrs: readonly string[];
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
    const deadlineMs = Math.min(introduction.deadlineMs, clock.now() + loginLimitMs);
    const contact = { destination: node, privateKey, firstHostKey: introduction.firstHostKey, knownHosts };
    try {
      const connection = await meetNode(
        { ...contact, hostKeyPlace: systemHostKeyPlace, clock, deadlineMs, progress },
        signal,
      );
      introduction.connections.adopt(node, connection);
      const complaints = await awaitFirstBoot(connection, { name, hasDeadline: true }, signal);
      if (complaints !== undefined) progress.detail(1, `${name}: cloud-init complained: ${complaints}`);
    } catch (error) {
      signal.throwIfAborted();
      throw await explained(error, { name, introduction }, surroundings, signal);
    }
    step.done();
    introduction.onNode(node);
  };
}

/** A machine that never answered: perhaps this machine's address is no longer the one that is let in, or the creation's time is over. */
async function explained(
  error: unknown,
  { name, introduction }: { readonly name: string; readonly introduction: Introduction },
  { environment, clock }: Surroundings,
  signal: AbortSignal,
): Promise<unknown> {
  if (!(error instanceof ClusterError) || error.id !== "connection-failed") return error;
  const { facts } = error;
  const text = await silenceText(environment, introduction.cidrs, signal);
  if (text !== undefined) {
    return new ClusterError(error.id, `${error.message} ${text}`, {
      hint: "Create the cluster anew, naming the addresses that must reach it with --admin-cidr.",
      facts,
      cause: error,
    });
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

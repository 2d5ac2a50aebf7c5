import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import { nodeReference } from "../model/cluster-record.ts";
import { ClusterError } from "../errors.ts";
import { createTurns } from "../ssh/turns.ts";
import type { Surroundings } from "./backend.ts";

const firstPauseMs = 200;
const meetingsAtOnce = 256;

export interface Raising {
  /** How many nodes there will be. */
  readonly count: number;
  /** Between two looks at the machines. */
  readonly longestPauseMs: number;
  /** The creation as far as it can be seen; throws where one of its machines, or something else, makes the cluster impossible. */
  readonly look: (signal: AbortSignal) => Promise<ClusterRecord | undefined>;
  /** Gets hold of a machine that has its address; resolves when it can be logged in to. */
  readonly meet: (node: NodeRecord, signal: AbortSignal) => Promise<void>;
}

/** Looks at all machines again and again until each can be logged in to. Throws whatever `look` and `meet` throw. */
export async function raiseNodes(
  raising: Raising,
  { clock, progress }: Surroundings,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const waiting = { for: "" };
  const meetings = openMeetings(raising, signal);
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.25, raising.longestPauseMs)) {
      const cluster = await raising.look(meetings.signal);
      const nodes = cluster?.nodes ?? [];
      for (const node of nodes) if (node.state === "running" && node.ssh.host !== "") meetings.begin(node);
      waiting.for = waitingText(nodes, raising.count, meetings.met);
      progress.waiting(waiting.for === "" ? "" : `waiting for ${waiting.for}`);
      // Once all have their addresses, only an end is looked for.
      const pause = meetings.areAllBegun() ? raising.longestPauseMs : pauseMs;
      if (await meetings.allMet(async (wake) => clock.sleep(pause, wake))) return theCluster(cluster);
    }
  } catch (error) {
    throw signal.aborted && error === signal.reason ? withWaiting(error, waiting.for) : error;
  } finally {
    progress.waiting("");
    await meetings.end();
  }
}

function theCluster(cluster: ClusterRecord | undefined): ClusterRecord {
  if (cluster === undefined) throw new TypeError("Machines that were met make up no cluster");
  return cluster;
}

/** The creation's own limit doesn't know what it cut off. */
function withWaiting(error: unknown, waiting: string): unknown {
  if (!(error instanceof ClusterError) || error.id !== "deadline-passed" || waiting === "") return error;
  const hint = error.hint === undefined ? {} : { hint: error.hint };
  return new ClusterError(error.id, `${error.message} It was waiting for ${waiting}.`, {
    ...hint,
    facts: error.facts,
    cause: error,
  });
}

interface Meetings {
  /** Aborted as soon as a meeting fails, with its reason. */
  readonly signal: AbortSignal;
  readonly met: ReadonlySet<string>;
  begin(node: NodeRecord): void;
  areAllBegun(): boolean;
  /** Whether all are met, now or before the pause has passed. */
  allMet(pause: (wake: AbortSignal) => Promise<void>): Promise<boolean>;
  end(): Promise<void>;
}

function openMeetings(raising: Raising, signal: AbortSignal): Meetings {
  const failing = new AbortController();
  const complete = new AbortController();
  const either = AbortSignal.any([signal, failing.signal]);
  const wake = AbortSignal.any([either, complete.signal]);
  const turns = createTurns(meetingsAtOnce);
  const begun = new Map<string, Promise<void>>();
  const met = new Set<string>();
  const meet = async (node: NodeRecord): Promise<void> => {
    try {
      await turns.run(() => raising.meet(node, either), either);
      met.add(node.id);
      if (met.size === raising.count) complete.abort();
    } catch (error) {
      failing.abort(error);
    }
  };
  return {
    signal: either,
    met,
    begin: (node) => {
      if (!begun.has(node.id)) begun.set(node.id, meet(node));
    },
    areAllBegun: () => begun.size === raising.count,
    allMet: async (pause) => {
      // Waking from the pause, and being aborted in it, both reject: what happened is told by the signals.
      if (!complete.signal.aborted) await pause(wake).catch(() => {});
      either.throwIfAborted();
      return complete.signal.aborted;
    },
    end: async () => {
      failing.abort(new Error("The meetings are over"));
      await Promise.all(begun.values());
    },
  };
}

function waitingText(nodes: readonly NodeRecord[], count: number, met: ReadonlySet<string>): string {
  const unmet = nodes.filter((node) => node.state === "running" && !met.has(node.id));
  const pending = count - met.size - unmet.length;
  const parts = [
    ...(pending > 0 ? [`${pending} of ${count} machines to start`] : []),
    ...(unmet.length > 0 ? [`${someOf(unmet.map(nodeReference))} to let us in over SSH`] : []),
  ];
  return parts.join(", ");
}

function someOf(names: readonly string[]): string {
  const shown = names.toSorted().slice(0, 3).join(", ");
  return names.length > 3 ? `${shown} and ${names.length - 3} more` : shown;
}

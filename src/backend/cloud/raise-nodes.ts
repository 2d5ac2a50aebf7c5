import type { Instance } from "@aws-sdk/client-ec2";
import { nodeReference, type ClusterRecord, type NodeRecord } from "../../cluster/record.ts";
import { ClusterError } from "../../errors.ts";
import { createTurns } from "../../ssh/turns.ts";
import type { Surroundings } from "../backend.ts";
import type { CloudApi } from "./api.ts";
import { clusterExists } from "./cluster-exists.ts";
import { describeInstances } from "./describe.ts";
import { nodeState, type Place, readExpiry, toClusters, toNode } from "./records.ts";
import { readTags } from "./tags.ts";
import { visibilityLimitMs } from "./visibility.ts";

const firstPauseMs = 200;
const longestPauseMs = 5_000;
const meetingsAtOnce = 256;

export interface Raising {
  readonly clusterId: string;
  readonly creationId: string;
  readonly machineIds: readonly string[];
  readonly place: Place;
  /** Gets hold of a machine that has its address; resolves when it can be logged in to. */
  readonly meet: (node: NodeRecord, signal: AbortSignal) => Promise<void>;
}

/**
 * Polls all machines by one request until each can be logged in to. Throws `machine-failed` as soon as one ends instead, `cluster-exists`
 * where an elder creation of the same id shows up, and whatever `meet` throws.
 */
export async function raiseNodes(
  api: CloudApi,
  raising: Raising,
  surroundings: Surroundings,
  signal: AbortSignal,
): Promise<ClusterRecord> {
  const { clock, progress } = surroundings;
  const startMs = clock.now();
  const waiting = { for: "" };
  const meetings = openMeetings(raising, signal);
  try {
    for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(pauseMs * 1.25, longestPauseMs)) {
      const instances = await describeInstances(api, { clusterId: raising.clusterId }, meetings.signal);
      assertElder(instances, raising, api);
      const own = instances.filter((instance) => raising.machineIds.includes(instance.InstanceId ?? ""));
      assertPresent(own, raising, clock.now() - startMs);
      for (const node of own.map(toNode))
        if (node.state === "running" && node.publicAddress !== undefined) meetings.begin(node);
      waiting.for = waitingText(own, raising, meetings.met);
      progress.waiting(waiting.for === "" ? "" : `waiting for ${waiting.for}`);
      // Once all have their addresses, only an end is looked for.
      const pause = meetings.areAllBegun() ? longestPauseMs : pauseMs;
      if (await meetings.allMet(async (wake) => clock.sleep(pause, wake))) return theCluster(own, raising.place);
    }
  } catch (error) {
    throw signal.aborted && error === signal.reason ? withWaiting(error, waiting.for) : error;
  } finally {
    progress.waiting("");
    await meetings.end();
  }
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
      if (met.size === raising.machineIds.length) complete.abort();
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
    areAllBegun: () => begun.size === raising.machineIds.length,
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

/** Two networks can hold one id each at the same moment; then the later creation yields. */
function assertElder(instances: readonly Instance[], raising: Raising, api: CloudApi): void {
  const launchedMs = (creationId: string): number =>
    Math.min(...creationTimes(instances.filter((instance) => readTags(instance.Tags).creationId === creationId)));
  const own = launchedMs(raising.creationId);
  const others = instances.filter((instance) => {
    const state = nodeState(instance);
    return readTags(instance.Tags).creationId !== raising.creationId && (state === "starting" || state === "running");
  });
  const elder = others.find((other) => {
    const creationId = readTags(other.Tags).creationId ?? "";
    const otherMs = launchedMs(creationId);
    return otherMs < own || (otherMs === own && creationId < raising.creationId);
  });
  if (elder === undefined) return;
  const expiresAt = readExpiry(readTags(elder.Tags));
  throw clusterExists({ clusterId: raising.clusterId, region: api.region, expiresAt, nowMs: api.now() });
}

function creationTimes(instances: readonly Instance[]): readonly number[] {
  return instances.map((instance) => instance.LaunchTime?.getTime() ?? Infinity);
}

function assertPresent(own: readonly Instance[], raising: Raising, elapsedMs: number): void {
  const ended = own.map(toNode).find((node) => node.state === "ending" || node.state === "ended");
  if (ended !== undefined) {
    const name = nodeReference(ended);
    throw new ClusterError(
      "machine-failed",
      `${name} (${ended.id}) ended before it could be used: ${ended.stateReason ?? "no reason given"}.`,
      {
        hint: "A limit of the account, an encryption key or the image may be the reason; the message above is the cloud's own.",
        facts: { node: name, machine: ended.id, reason: ended.stateReason },
      },
    );
  }
  if (elapsedMs < visibilityLimitMs || own.length === raising.machineIds.length) return;
  const seen = new Set(own.map((instance) => instance.InstanceId));
  const unseen = raising.machineIds.filter((id) => !seen.has(id));
  throw new ClusterError(
    "machine-failed",
    `The cloud launched ${unseen.join(", ")}, but does not know of it after two minutes.`,
    {
      hint: "Try again.",
      facts: { machines: unseen },
    },
  );
}

function waitingText(own: readonly Instance[], raising: Raising, met: ReadonlySet<string>): string {
  const nodes = own.map(toNode);
  const unmet = nodes.filter((node) => node.state === "running" && !met.has(node.id));
  const pending = raising.machineIds.length - met.size - unmet.length;
  const parts = [
    ...(pending > 0 ? [`${pending} of ${raising.machineIds.length} machines to start`] : []),
    ...(unmet.length > 0 ? [`${someOf(unmet.map(nodeReference))} to let us in over SSH`] : []),
  ];
  return parts.join(", ");
}

function someOf(names: readonly string[]): string {
  const shown = names.toSorted().slice(0, 3).join(", ");
  return names.length > 3 ? `${shown} and ${names.length - 3} more` : shown;
}

function theCluster(own: readonly Instance[], place: Place): ClusterRecord {
  const [cluster] = toClusters(own, place);
  if (cluster === undefined) throw new TypeError("Machines that were met make up no cluster");
  return cluster;
}

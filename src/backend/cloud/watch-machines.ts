import type { Instance } from "@aws-sdk/client-ec2";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import type { Clock } from "../../system/clock.ts";
import { machineFailed } from "../machine-failed.ts";
import type { CloudApi } from "./api.ts";
import { clusterExists } from "./cluster-exists.ts";
import { describeInstances } from "./describe.ts";
import { nodeState, type Place, readExpiry, toClusters, toNode } from "./records.ts";
import { readTags } from "./tags.ts";
import { visibilityLimitMs } from "./visibility.ts";

const endedHint =
  "A limit of the account, an encryption key or the image may be the reason; the message above is the cloud's own.";

export interface Watching {
  readonly clusterId: string;
  readonly creationId: string;
  readonly machineIds: readonly string[];
  readonly place: Place;
}

/**
 * Looks at all machines of a creation by one request. What it returns throws `machine-failed` when one of them ends, and `cluster-exists` where an
 * elder creation of the same id shows up.
 */
export function watchMachines(
  api: CloudApi,
  watching: Watching,
  clock: Clock,
): (signal: AbortSignal) => Promise<ClusterRecord | undefined> {
  const startMs = clock.now();
  return async (signal) => {
    const instances = await describeInstances(api, { clusterId: watching.clusterId }, signal);
    assertElder(instances, watching, api);
    const own = instances.filter((instance) => watching.machineIds.includes(instance.InstanceId ?? ""));
    assertPresent(own, watching, clock.now() - startMs);
    return toClusters(own, watching.place)[0];
  };
}

/** Two networks can hold one id each at the same moment; then the later creation yields. */
function assertElder(instances: readonly Instance[], watching: Watching, api: CloudApi): void {
  const launchedMs = (creationId: string): number =>
    Math.min(...creationTimes(instances.filter((instance) => readTags(instance.Tags).creationId === creationId)));
  const own = launchedMs(watching.creationId);
  const others = instances.filter((instance) => {
    const state = nodeState(instance);
    return readTags(instance.Tags).creationId !== watching.creationId && (state === "starting" || state === "running");
  });
  const elder = others.find((other) => {
    const creationId = readTags(other.Tags).creationId ?? "";
    const otherMs = launchedMs(creationId);
    return otherMs < own || (otherMs === own && creationId < watching.creationId);
  });
  if (elder === undefined) return;
  const expiresAt = readExpiry(readTags(elder.Tags));
  throw clusterExists({ clusterId: watching.clusterId, region: api.region, expiresAt, nowMs: api.now() });
}

function creationTimes(instances: readonly Instance[]): readonly number[] {
  return instances.map((instance) => instance.LaunchTime?.getTime() ?? Infinity);
}

function assertPresent(own: readonly Instance[], watching: Watching, elapsedMs: number): void {
  const ended = own.map(toNode).find((node) => node.state === "ending" || node.state === "ended");
  if (ended !== undefined) throw machineFailed(ended, { said: "", hint: endedHint });
  if (elapsedMs < visibilityLimitMs || own.length === watching.machineIds.length) return;
  const seen = new Set(own.map((instance) => instance.InstanceId));
  const unseen = watching.machineIds.filter((id) => !seen.has(id));
  throw new ClusterError(
    "machine-failed",
    `The cloud launched ${unseen.join(", ")}, but does not know of it after two minutes.`,
    {
      hint: "Try again.",
      facts: { machines: unseen },
    },
  );
}

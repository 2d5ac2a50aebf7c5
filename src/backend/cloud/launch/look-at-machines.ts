import type { ClusterRecord } from "../../../model/cluster-record.ts";
import { ClusterError } from "../../../errors.ts";
import type { Clock } from "../../../system/clock.ts";
import { machineFailed } from "../../machine-failed.ts";
import type { CloudApi } from "../api/api.ts";
import { clusterExists } from "./cluster-exists.ts";
import { describeInstances } from "../api/describe.ts";
import { type Machine, readMachines } from "../records/read-machines.ts";
import { clustersOf, type Place, toNode } from "../records/records.ts";
import { visibilityLimitMs } from "../api/visibility.ts";

const endedHint =
  "A limit of the account, an encryption key or the image may be the reason; the message above is the cloud's own.";

export interface Watching {
  readonly clusterId: string;
  readonly creationId: string;
  readonly machineIds: readonly string[];
  readonly place: Place;
  /** The clock time at which the API had confirmed all launches. */
  readonly launchedMs: number;
}

/**
 * Looks at all machines of a creation with one request. Throws `machine-failed` if one of them ended, and `cluster-exists` if an older creation of
 * the same id shows up. A machine whose tags aren't complete yet, as in the first moments, counts as not seen. Returns `undefined` if no machine is
 * visible.
 */
export async function lookAtMachines(
  api: CloudApi,
  watching: Watching,
  clock: Clock,
  signal: AbortSignal,
): Promise<ClusterRecord | undefined> {
  const instances = await describeInstances(api, { clusterId: watching.clusterId }, signal);
  assertElder(readMachines(instances).machines, watching, api);
  // Read separately, so that other machines' claims don't affect them.
  const launched = instances.filter(({ InstanceId = "" }) => watching.machineIds.includes(InstanceId));
  const own = readMachines(launched).machines.filter(({ creationId }) => creationId === watching.creationId);
  assertPresent(own, watching, clock.now() - watching.launchedMs);
  return clustersOf(own, watching.place)[0];
}

/** Two networks can each hold the same id at the same moment. Then the later creation yields. */
function assertElder(machines: readonly Machine[], watching: Watching, api: CloudApi): void {
  const launchedMs = (creationId: string): number =>
    Math.min(
      ...machines
        .filter((machine) => machine.creationId === creationId)
        .map(({ launchedAt }) => launchedAt?.getTime() ?? Infinity),
    );
  const own = launchedMs(watching.creationId);
  const elder = machines.find(({ creationId, state, expiresAt }) => {
    if (creationId === watching.creationId || (state !== "starting" && state !== "running")) return false;
    if (expiresAt !== undefined && expiresAt.getTime() < api.now()) return false;
    const otherMs = launchedMs(creationId);
    return otherMs < own || (otherMs === own && creationId < watching.creationId);
  });
  if (elder === undefined) return;
  const { expiresAt } = elder;
  throw clusterExists({ clusterId: watching.clusterId, region: api.region, expiresAt, nowMs: api.now() });
}

function assertPresent(own: readonly Machine[], watching: Watching, elapsedMs: number): void {
  const ended = own.map(toNode).find((node) => node.state === "ending" || node.state === "ended");
  if (ended !== undefined) throw machineFailed(ended, { said: "", hint: endedHint });
  if (elapsedMs < visibilityLimitMs || own.length === watching.machineIds.length) return;
  const seen = new Set(own.map(({ id }) => id));
  const unseen = watching.machineIds.filter((id) => !seen.has(id));
  throw new ClusterError(
    "machine-failed",
    `The cloud launched ${unseen.join(", ")}, but does not know of it after two minutes, or not with the tags that it was given.`,
    {
      hint: "Try again.",
      facts: { machines: unseen },
    },
  );
}

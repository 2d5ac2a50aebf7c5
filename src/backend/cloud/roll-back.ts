import { ClusterError } from "../../errors.ts";
import type { ClusterRecord } from "../../cluster/record.ts";
import { creationDirectory, endCreation } from "../../system/creation-folder.ts";
import type { ProvisionRequest, Surroundings } from "../backend.ts";
import type { CloudApi } from "./api.ts";
import { isClusterExists } from "./cluster-exists.ts";
import type { CloudCreation } from "./cloud-creation.ts";
import { describeInstances } from "./describe.ts";
import { endLaunches } from "./end-machines.ts";
import { leftoversText } from "./leftovers-text.ts";
import { machineIds, type Making, remainsText } from "./making.ts";
import { createGroup } from "./network.ts";
import { type Place, toClusters } from "./records.ts";
import { removeCreation } from "./remove-creation.ts";

const evidenceLimitMs = 20_000;
const limitMs = 9 * 60_000;

export interface RollBack {
  readonly api: CloudApi;
  readonly place: Place;
  readonly request: Pick<ProvisionRequest<CloudCreation>, "keepOnFailure" | "onFailure" | "variant" | "distribution">;
  readonly surroundings: Surroundings;
}

/**
 * Removes what a creation has made, by signals of its own, since the creation's is perhaps aborted. After a failure evidence comes first; after
 * an interruption machines are told to end first, because whoever interrupts may kill seconds later. Never throws: what is left is told.
 */
export async function rollBack(
  work: RollBack,
  failed: { readonly making: Making; readonly error: unknown },
  signal: AbortSignal,
): Promise<void> {
  const { making, error } = failed;
  const { progress } = work.surroundings;
  if (making.group.state === "none") return await endCreation(making.directory, "removed");
  // Where the id turned out to be another creation's, nothing of this one is worth keeping or looking at.
  if (work.request.keepOnFailure && !isClusterExists(error)) return await keep(work, making);
  const bound = AbortSignal.timeout(limitMs);
  const isInterrupted = signal.aborted && !(signal.reason instanceof ClusterError);
  using step = progress.start("Remove what was made");
  try {
    if (!isInterrupted && !isClusterExists(error)) await saveEvidence(work, making);
    const { ended, unknown } = await endLaunches(
      work.api,
      [...making.launches.values()],
      work.surroundings.clock,
      bound,
    );
    if (isInterrupted) await saveEvidence(work, making);
    const groupId = await learnGroup(work, making, bound);
    const remains = { creationId: making.creationId, machineIds: ended, groupId };
    const left = await removeCreation(work.api, remains, work.surroundings, bound);
    const text = leftoversText({ ...left, unknownLaunches: unknown, expiresAt: making.expiresAt });
    if (text !== undefined) return progress.warn(text);
    await endCreation(making.directory, "removed");
    step.done();
  } catch (problem) {
    const reason = problem instanceof Error ? problem.message : String(problem);
    progress.warn(`The removal failed: ${reason} ${remainsText(making, work.api.region)}`);
  }
}

async function keep(work: RollBack, making: Making): Promise<void> {
  await saveEvidence(work, making);
  const ids = machineIds(making);
  const what = ids.length === 0 ? "no machines" : `machines ${ids.join(", ")}`;
  work.surroundings.progress.note(
    `Kept, as asked: ${what}. They end by themselves at ${making.expiresAt.toISOString()}.`,
  );
  await endCreation(making.directory, "finished");
}

/** Its failure must not keep anything from being removed. */
async function saveEvidence(work: RollBack, making: Making): Promise<void> {
  const signal = AbortSignal.timeout(evidenceLimitMs);
  try {
    await work.request.onFailure(await describeCluster(work, making, signal), signal);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    work.surroundings.progress.detail(1, `The evidence is incomplete: ${reason}`);
  }
}

async function describeCluster(work: RollBack, making: Making, signal: AbortSignal): Promise<ClusterRecord> {
  const instances = await describeInstances(work.api, { creationId: making.creationId }, signal);
  const [cluster] = toClusters(instances, work.place);
  return cluster ?? emptyCluster(work, making);
}

/** No machine can be seen (yet, or any more). */
function emptyCluster({ request, place }: RollBack, making: Making): ClusterRecord {
  return {
    id: making.clusterId,
    creationId: making.creationId,
    backend: "cloud",
    region: place.region,
    variant: request.variant,
    distribution: request.distribution,
    state: "incomplete",
    createdAt: undefined,
    expiresAt: making.expiresAt,
    nodes: [],
    directory: creationDirectory(place.root, making.clusterId, making.creationId),
  };
}

/** The group's id. Where the answer was lost it is asked for again, so that a request still under way can't leave one behind. */
async function learnGroup(work: RollBack, making: Making, signal: AbortSignal): Promise<string | undefined> {
  if (making.group.state === "made") return making.group.id;
  const request = { clusterId: making.clusterId, vpcId: making.network.vpcId, tags: making.tags };
  try {
    return await createGroup(work.api, request, work.surroundings.clock, signal);
  } catch (error) {
    if (isClusterExists(error)) return undefined;
    throw error;
  }
}

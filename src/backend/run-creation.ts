import type { ClusterRecord, NodeRecord } from "../model/cluster-record.ts";
import { beginCreation, endCreation } from "../system/creation-folder.ts";
import type { Progress } from "../system/progress.ts";
import type { ProvisionRequest, Surroundings } from "./backend.ts";
import { type RollBack, rollBack } from "./roll-back.ts";

/** What a backend is given for one creation, beside what is its own. */
export interface Provisioning<Creation, Resolved, Making> {
  readonly request: ProvisionRequest<Creation>;
  readonly resolve: (signal: AbortSignal) => Promise<Resolved>;
  readonly surroundings: Surroundings;
  readonly onNode: (node: NodeRecord) => void;
  /** Told of the creation's state as soon as there is something to roll back. */
  readonly onMaking: (making: Making) => void;
}

/** The parts of a creation that are the backend's own. */
export interface CreationParts<Making> {
  readonly request: Pick<ProvisionRequest<unknown>, "clusterId" | "creationId" | "directory" | "complete">;
  readonly progress: Progress;
  /** Clears the way, and finds what the machines are made of. Nothing that it makes has to be undone. */
  readonly prepare: (signal: AbortSignal) => Promise<Making>;
  /** Resolves when all machines can be logged in to. */
  readonly make: (making: Making, signal: AbortSignal) => Promise<ClusterRecord>;
  readonly rollBackOf: (making: Making) => RollBack;
}

/** A creation from the lock on its folder to its end, good or bad; see Backend.provision. */
export async function runCreation<Making>(parts: CreationParts<Making>, signal: AbortSignal): Promise<ClusterRecord> {
  const { request, progress } = parts;
  await beginCreation(request.directory, request.clusterId, request.creationId);
  const state: { making?: Making } = {};
  try {
    const making = await parts.prepare(signal);
    state.making = making;
    const cluster = await parts.make(making, signal);
    await request.complete(cluster, signal);
    await endCreation(request.directory, "finished");
    return cluster;
  } catch (error) {
    if (state.making === undefined) await endCreation(request.directory, "removed");
    else await rollBack(parts.rollBackOf(state.making), { error, progress }, signal);
    throw error;
  }
}

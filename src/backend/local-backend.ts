import { dirname } from "node:path";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { ClusterError } from "../errors.ts";
import { abandonedCreations } from "../system/creation-folder.ts";
import type { Backend, CreationPlan, CreationRequest, Surroundings } from "./backend.ts";
import { keptResolution, type Resolve } from "./kept-resolution.ts";
import type { Provisioning } from "./run-creation.ts";

/** What a roll-back of one of their creations must know at the least. */
interface LocalMaking {
  readonly clusterId: string;
  /** Whether anything has been asked for yet. */
  isTouched: boolean;
}

export interface LocalProvisioning<Creation, Resolved, Making> extends Provisioning<Creation, Resolved, Making> {
  /** The folder of this machine's creations. */
  readonly root: string;
}

/** The parts of such a backend that are its own. */
export interface LocalParts<Creation, Resolved, Making extends LocalMaking> extends Pick<
  Backend<Creation>,
  "name" | "place" | "findElsewhere"
> {
  readonly ipDetect: string;
  /** See Backend. */
  readonly cgroups1Advice: string;
  /** The folder of this machine's creations. */
  readonly root: string;
  /** See Backend.remainsText. */
  readonly remainsText: (making: Making | undefined) => string;
  /** Makes nothing. */
  readonly resolve: Resolve<Creation, Resolved>;
  /** Gives the `cluster-exists` of an id that is taken; `leaving` are creations that are about to be removed. */
  readonly assertIdIsFree: (clusterId: string, leaving: readonly string[], signal: AbortSignal) => Promise<void>;
  readonly describePlan: (request: CreationRequest<Creation>, resolved: Resolved) => CreationPlan;
  readonly provision: (
    work: LocalProvisioning<Creation, Resolved, Making>,
    signal: AbortSignal,
  ) => Promise<ClusterRecord>;
}

/** What the backends whose clusters live on this machine, until somebody removes them, do in the same way. */
export function localBackend<Creation, Resolved, Making extends LocalMaking>(
  parts: LocalParts<Creation, Resolved, Making>,
  surroundings: Surroundings,
): Omit<Backend<Creation>, "find" | "list" | "destroy" | "evidence"> {
  const current: { making?: Making } = {};
  const resolution = keptResolution(parts.resolve);
  return {
    name: parts.name,
    place: parts.place,
    ipDetect: parts.ipDetect,
    ipDetectPublic: undefined,
    nodesKeepTime: false,
    cgroups1Advice: parts.cgroups1Advice,
    findElsewhere: parts.findElsewhere,
    remainsText: () => parts.remainsText(current.making),
    plan: async (request, signal) => {
      const abandoned = await abandonedCreations(parts.root, request.clusterId);
      const leaving = abandoned.map(({ creation }) => creation.creationId);
      const [resolved] = await Promise.all([
        resolution.find(request, signal),
        parts.assertIdIsFree(request.clusterId, leaving, signal),
      ]);
      return parts.describePlan(request, resolved);
    },
    provision: async (request, onNode, signal) => {
      const resolve = async (inner: AbortSignal): Promise<Resolved> => resolution.take(request, inner);
      const onMaking = (making: Making): void => {
        current.making = making;
      };
      const root = dirname(request.directory);
      return parts.provision({ root, request, resolve, surroundings, onNode, onMaking }, signal);
    },
  };
}

/** The refusal of an id that is taken; `removal` is the command that removes the other cluster. */
export function clusterExists(
  clusterId: string,
  { removal, cause }: { readonly removal: string; readonly cause?: unknown },
): ClusterError {
  return new ClusterError("cluster-exists", `A cluster "${clusterId}" exists, or is being created, on this machine.`, {
    hint: `Choose another --cluster-id, or remove it: ${removal}`,
    facts: { cluster: clusterId },
    cause,
  });
}

/** For someone who ends the program now: which `things` may be left, and the command that removes them. */
export function localRemainsText(
  making: LocalMaking | undefined,
  { things, removal }: { readonly things: string; readonly removal: (clusterId: string) => string },
): string {
  if (making === undefined || !making.isTouched) return "Nothing has been made.";
  return `${things} may be left. Remove them: ${removal(making.clusterId)}`;
}

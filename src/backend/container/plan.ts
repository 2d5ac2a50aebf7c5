import { nodesText } from "../../system/amounts.ts";
import type { Clock } from "../../system/runtime.ts";
import { nodeCount } from "../../model/cluster-record.ts";
import type { CreationRequest, CreationSummary } from "../contract.ts";
import { endFacts, endLine } from "../shared/lifetimes.ts";
import { assertCgroups1 } from "../shared/machine-errors.ts";
import { chooseDistribution, hostCgroupsAdvice } from "./distributions.ts";
import { findReach, readEngineFacts } from "./engine/choose-engine.ts";
import type { EngineFacts, EngineKind, Reach } from "./engine/engine-kind.ts";
import type { Engine } from "./engine/engine.ts";
import { type NodeImage, findNodeImage } from "./launch/node-image.ts";
import { type ContainerOptions, assertVolumesExist } from "./options.ts";

/** What a creation's options resolve to in the engine. */
export interface ResolvedCreation {
  readonly kind: EngineKind;
  readonly facts: EngineFacts;
  readonly reach: Reach;
  /** The distribution in the cluster's record; for a user's own image, the image's name. */
  readonly distribution: string;
  readonly image: NodeImage;
}

type Resolving = Pick<
  CreationRequest<ContainerOptions>,
  "distribution" | "options" | "needsCgroups1" | "needsApt" | "imagePreparation"
>;

/**
 * Creates nothing. Throws `machine-not-set-up` if this engine isn't usable, and `bad-usage` if a volume doesn't exist.
 */
export async function resolveCreation(
  engine: Engine,
  { distribution: asked, options, needsCgroups1, needsApt, imagePreparation }: Resolving,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<ResolvedCreation> {
  await assertVolumesExist(options.volumes);
  const facts = await readEngineFacts(engine, signal);
  assertCgroups1(needsCgroups1, {
    name: "this machine, whose cgroups the containers share,",
    cgroupVersion: facts.cgroupVersion === "2" ? 2 : 1,
    advice: hostCgroupsAdvice,
  });
  const { nodeImage } = options;
  const distribution =
    nodeImage === undefined ? chooseDistribution(asked, facts.cgroupVersion, needsApt) : `image ${nodeImage}`;
  const [reach, image] = await Promise.all([
    findReach(engine, facts, platform, signal),
    findNodeImage(engine, distribution, { options, imagePreparation }, signal),
  ]);
  return { kind: engine.kind, facts, reach, distribution, image };
}

/** Describes what a creation would create, for people and as data. */
export function describePlan(
  { clusterId, counts, options, lifetimeMs }: CreationRequest<ContainerOptions>,
  { kind, facts, distribution, image, reach }: ResolvedCreation,
  clock: Clock,
): CreationSummary {
  const source = image.containerfile === undefined ? "will be pulled" : "will be built, which takes minutes";
  return {
    nodeCount: nodeCount(counts),
    lines: [
      ["Cluster", clusterId],
      ["Engine", `${kind.title} ${facts.version}, cgroups ${facts.cgroupVersion}`],
      ["Distribution", distribution],
      ["Image", `${image.name} (${image.isPresent ? "present" : source})`],
      ["Containers", `${nodeCount(counts)}: ${nodesText(counts)}`],
      ["Limits", `memory ${options.memory ?? "none"}, CPUs ${options.cpus ?? "none"}, each`],
      ["Network", "its own bridge"],
      [
        "Reached at",
        reach === "direct"
          ? "the containers' own addresses"
          : "ports of 127.0.0.1, since the engine runs in a virtual machine",
      ],
      ["Volumes", options.volumes.length === 0 ? "none" : options.volumes.join(", ")],
      endLine(lifetimeMs, clock),
    ],
    facts: {
      cluster: clusterId,
      engine: { name: kind.name, version: facts.version, cgroupVersion: facts.cgroupVersion },
      distribution,
      image: { name: image.name, isPresent: image.isPresent },
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      reach,
      volumes: options.volumes,
      ...(options.memory !== undefined && { memory: options.memory }),
      ...(options.cpus !== undefined && { cpus: options.cpus }),
      ...endFacts(lifetimeMs, clock),
    },
  };
}

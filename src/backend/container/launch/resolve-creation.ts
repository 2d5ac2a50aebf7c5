import type { CreationRequest } from "../../contract.ts";
import { assertCgroups1 } from "../../cgroups1.ts";
import type { ContainerOptions } from "../options.ts";
import { assertVolumesExist } from "../options.ts";
import { chooseDistribution, hostCgroupsAdvice } from "./distributions.ts";
import type { Engine } from "../engine/engine.ts";
import { type EngineFacts, type Reach } from "../engine/engine-kind.ts";
import { findReach, readEngineFacts } from "../engine/engine-facts.ts";
import type { EngineKind } from "../engine/engine-kind.ts";
import { findNodeImage, type NodeImage } from "./node-image.ts";

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
  "distribution" | "options" | "needsCgroups1" | "imagePreparation"
>;

/**
 * Creates nothing. Throws `machine-not-set-up` if this engine isn't usable, and `bad-usage` if a volume doesn't exist.
 */
export async function resolveCreation(
  engine: Engine,
  { distribution: asked, options, needsCgroups1, imagePreparation }: Resolving,
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
  const distribution = nodeImage === undefined ? chooseDistribution(asked, facts.cgroupVersion) : `image ${nodeImage}`;
  const [reach, image] = await Promise.all([
    findReach(engine, facts, platform, signal),
    findNodeImage(engine, distribution, { options, imagePreparation }, signal),
  ]);
  return { kind: engine.kind, facts, reach, distribution, image };
}

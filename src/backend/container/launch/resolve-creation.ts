import type { CreationRequest } from "../../../model/creation.ts";
import { assertCgroups1 } from "../../cgroups1.ts";
import type { ContainerOptions } from "../container-options.ts";
import { assertVolumesExist } from "../container-schema.ts";
import { chooseDistribution, hostCgroupsAdvice } from "./containerfiles.ts";
import type { Engine } from "../engine/engine.ts";
import { type EngineFacts, type Reach } from "../engine/engine-kind.ts";
import { findReach, readEngineFacts } from "../engine/engine-facts.ts";
import type { EngineKind } from "../engine/engine-kind.ts";
import { findNodeImage, type NodeImage } from "./node-image.ts";

/** The things of the engine that a creation's options mean. */
export interface ResolvedCreation {
  readonly kind: EngineKind;
  readonly facts: EngineFacts;
  readonly reach: Reach;
  /** As the cluster's record tells it: of an image of the user's own it is the image's name. */
  readonly distribution: string;
  readonly image: NodeImage;
}

type Resolving = Pick<
  CreationRequest<ContainerOptions>,
  "distribution" | "options" | "needsCgroups1" | "imagePreparation"
>;

/** Makes nothing. Throws `machine-not-set-up` where this engine can't serve, `bad-usage` where a volume isn't there. */
export async function resolveCreation(
  engine: Engine,
  { distribution: asked, options, needsCgroups1, imagePreparation }: Resolving,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<ResolvedCreation> {
  await assertVolumesExist(options.volumes);
  const facts = await readEngineFacts(engine, signal);
  assertCgroups1(needsCgroups1, {
    name: "this machine, whose control groups containers have,",
    cgroupVersion: facts.cgroupVersion === "2" ? 2 : 1,
    advice: hostCgroupsAdvice,
  });
  const reach = await findReach(engine, facts, platform, signal);
  const { nodeImage } = options;
  const distribution = nodeImage === undefined ? chooseDistribution(asked, facts.cgroupVersion) : `image ${nodeImage}`;
  const image = await findNodeImage(engine, distribution, { options, imagePreparation }, signal);
  return { kind: engine.kind, facts, reach, distribution, image };
}

import type { CreationRequest } from "../backend.ts";
import type { ContainerCreation } from "./container-creation.ts";
import type { Engine } from "./engine.ts";
import { type EngineFacts, findReach, type Reach, readEngineFacts } from "./engine-facts.ts";
import type { EngineKind } from "./engine-kinds.ts";
import { findNodeImage, type NodeImage } from "./node-image.ts";

/** The things of the engine that a creation's options mean. */
export interface ResolvedCreation {
  readonly kind: EngineKind;
  readonly facts: EngineFacts;
  readonly reach: Reach;
  readonly image: NodeImage;
}

/** Makes nothing. Throws `machine-not-set-up` where this engine can't serve. */
export async function resolveCreation(
  engine: Engine,
  { distribution, creation }: Pick<CreationRequest<ContainerCreation>, "distribution" | "creation">,
  platform: NodeJS.Platform,
  signal: AbortSignal,
): Promise<ResolvedCreation> {
  const [facts, image] = await Promise.all([
    readEngineFacts(engine, signal),
    findNodeImage(engine, distribution, creation, signal),
  ]);
  return { kind: engine.kind, facts, reach: await findReach(engine, facts, platform, signal), image };
}

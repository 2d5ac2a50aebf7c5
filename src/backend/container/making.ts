import { localRemainsText } from "../local-backend.ts";
import { destroyCommand, type Engine } from "./engine.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";
import type { LabelValues } from "./labels.ts";
import type { NetworkFacts } from "./read-containers.ts";

/** What a creation makes, and all that a roll-back must know of it. */
export interface Making {
  readonly clusterId: string;
  readonly creationId: string;
  readonly directory: string;
  readonly resolved: ResolvedCreation;
  readonly labels: LabelValues;
  /** What the labels say. */
  readonly network: NetworkFacts;
  /** Whether anything has been asked for yet. */
  isTouched: boolean;
}

/** For someone who ends the program now: what may be left, and how it goes away. */
export function remainsText(engine: Engine, making: Making | undefined): string {
  return localRemainsText(making, {
    things: "Containers and a network",
    removal: (clusterId) => destroyCommand(engine, clusterId),
  });
}

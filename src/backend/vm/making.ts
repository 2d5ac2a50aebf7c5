import { localRemainsText } from "../local-backend.ts";
import { destroyCommand } from "./destroy-command.ts";
import type { ImageFacts } from "./disk.ts";
import type { ResolvedCreation } from "./resolve-creation.ts";

/** What a creation makes, and all that a roll-back must know of it. */
export interface Making {
  readonly clusterId: string;
  readonly directory: string;
  readonly resolved: ResolvedCreation;
  readonly image: ImageFacts;
  /** Whether anything has been made yet. */
  isTouched: boolean;
}

/** For someone who ends the program now: what may be left, and how it goes away. */
export function remainsText(making: Making | undefined): string {
  return localRemainsText(making, { things: "Running virtual machines", removal: destroyCommand });
}

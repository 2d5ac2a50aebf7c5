import type { Clock } from "./clock.ts";
import type { Environment } from "./environment.ts";
import type { Progress } from "./progress.ts";

/** The parts of the running program that all code for creating or using clusters receives. */
export interface Surroundings {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly progress: Progress;
}

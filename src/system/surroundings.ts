import type { Clock } from "./clock.ts";
import type { Environment } from "./environment.ts";
import type { Progress } from "./progress.ts";

/** What everything that makes or uses clusters is given of the program that it runs in. */
export interface Surroundings {
  readonly environment: Environment;
  readonly clock: Clock;
  readonly progress: Progress;
}

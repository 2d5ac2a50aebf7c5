import { platform } from "node:os";
import type { Check } from "../../model/check.ts";
import type { Surroundings } from "../../system/surroundings.ts";
import { engineCheck } from "./checks/engine.ts";
import { containerFacts } from "./checks/facts.ts";
import { hostChecks } from "./checks/host.ts";
import { leftoversCheck } from "./checks/leftovers.ts";
import { volumeChecks } from "./checks/mounts.ts";
import type { EngineName } from "./engine/engine-kind.ts";

/** Returns `doctor`'s checks for clusters of containers, in display order. One of them runs a container for a moment. */
export function containerChecks(
  engine: EngineName | undefined,
  surroundings: Surroundings,
  signal: AbortSignal,
): readonly Check[] {
  const facts = containerFacts(engine, surroundings, platform(), signal);
  const host = hostChecks(facts, platform());
  return [engineCheck(facts), ...host, ...volumeChecks(facts, surroundings.environment, signal), leftoversCheck(facts)];
}

import { platform } from "node:os";
import { join } from "node:path";
import type { Check } from "../../doctor/check.ts";
import { stateFolder } from "../../system/state-folder.ts";
import type { Surroundings } from "../backend.ts";
import { engineCheck } from "./checks/access.ts";
import { containerFacts } from "./checks/facts.ts";
import { hostChecks } from "./checks/host.ts";
import { leftoversCheck } from "./checks/leftovers.ts";
import { openEngine } from "./engine.ts";

/** What `doctor` looks at where clusters are containers, in the order in which it is shown. Only questions. */
export function containerChecks(surroundings: Surroundings, signal: AbortSignal): readonly Check[] {
  const facts = containerFacts(openEngine(surroundings), platform(), signal);
  const root = join(stateFolder(surroundings.environment), "container");
  return [engineCheck(facts), ...hostChecks(facts, platform()), leftoversCheck(facts, root)];
}

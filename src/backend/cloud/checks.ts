import type { Check } from "../../model/check.ts";
import type { Runtime } from "../../system/runtime.ts";
import { accessChecks } from "./checks/access.ts";
import { adminAddressCheck } from "./checks/admin-address.ts";
import { type CheckedDefaults, cloudFacts } from "./checks/facts.ts";
import { leftoversCheck } from "./checks/leftovers.ts";
import { launchChecks } from "./checks/launch-checks.ts";
import { permissionChecks } from "./checks/permissions.ts";

/**
 * Returns `doctor`'s checks of the cloud, in display order. They only send read-only requests and dry runs. The first check that needs an answer
 * sends the request; the signal ends them all.
 */
export function cloudChecks(defaults: CheckedDefaults, runtime: Runtime, signal: AbortSignal): readonly Check[] {
  const { region } = defaults;
  const facts = cloudFacts(defaults, runtime, signal);
  return [
    ...accessChecks(facts, region, runtime.clock),
    ...permissionChecks(facts, defaults),
    ...launchChecks(facts, defaults),
    adminAddressCheck(facts, { region, environment: runtime.environment }),
    leftoversCheck(facts, region),
  ];
}

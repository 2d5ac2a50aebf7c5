import { ClusterError, hasErrorId } from "../../../errors.ts";
import { isFailure } from "./api-errors.ts";
import { enabledRegions } from "../records.ts";
import type { OpenRegion } from "./open-api.ts";

const limitMs = 8_000;
/** Every account has these regions, and any region can list the enabled ones. */
const homeRegion = "us-east-1";
const otherHomeRegion = "us-west-2";

/**
 * Runs a task in a region. If the region doesn't exist or isn't enabled, the API answers `AuthFailure` or nothing at
 * all. After such a failure, asks a region that every account has, and throws `region-not-enabled` with the list of the
 * enabled regions if the given one is not among them.
 */
export async function withRegionAdvice<Result>(
  open: OpenRegion,
  region: string,
  task: () => Promise<Result>,
  signal: AbortSignal,
): Promise<Result> {
  try {
    return await task();
  } catch (error) {
    if (signal.aborted || !mayBeWrongRegion(error)) throw error;
    const home = region === homeRegion ? otherHomeRegion : homeRegion;
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(limitMs)]);
    const regions = await enabledRegions(open(home), bounded).catch(() => undefined);
    if (regions === undefined || regions.includes(region)) throw error;
    throw new ClusterError(
      "region-not-enabled",
      `Region ${region} does not exist, or is not enabled for the account.`,
      {
        hint: `Enabled: ${regions.toSorted().join(", ")}.`,
        facts: { region, enabled: regions },
        cause: error,
      },
    );
  }
}

function mayBeWrongRegion(error: unknown): boolean {
  const isUnanswered = hasErrorId(error, "cloud-failed") && error.transient;
  return (
    isUnanswered || hasErrorId(error, "region-not-enabled") || isFailure(error, "region-unknown")
  );
}

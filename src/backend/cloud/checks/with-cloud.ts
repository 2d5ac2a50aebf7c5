import { type Outcome, skip } from "../../../model/check.ts";
import { ClusterError } from "../../../errors.ts";
import type { CloudFacts } from "./facts.ts";

/** For checks that wait for facts of the cloud, which have shorter limits of their own. */
export const cloudLimitMs = 35_000;

/**
 * Runs a check that needs the cloud. It is skipped where credentials or region are at fault, since those have checks of their own, or where
 * a permission is lacking. The question goes out without waiting for what comes of the others.
 */
export async function withCloud(facts: CloudFacts, ask: () => Promise<Outcome>): Promise<Outcome> {
  const asked = Promise.allSettled([ask()]);
  const obstacle = await findObstacle(facts);
  if (obstacle !== undefined) return skip(`Not checked: ${obstacle}.`);
  const [answer] = await asked;
  if (answer.status === "fulfilled") return answer.value;
  const reason: unknown = answer.reason;
  if (isDenied(reason)) return skip(`Not checked: that needs the permission ec2:${String(reason.facts["action"])}.`);
  throw reason;
}

/** Why nothing can be asked of the region, in words; `undefined` where it answers. */
export async function findObstacle(facts: CloudFacts): Promise<string | undefined> {
  const error = await failureOf(facts.defaultGroups());
  if (error === undefined || isDenied(error)) return undefined;
  switch (error.id) {
    case "no-credentials":
      return "there are no credentials";
    case "credentials-refused":
      return "the credentials are refused";
    case "region-not-enabled":
      return "the region cannot be used";
    default:
      return "the cloud's API cannot be asked";
  }
}

/** What a fact failed with; `undefined` where it is known. Bugs are thrown. */
export async function failureOf(fact: Promise<unknown>): Promise<ClusterError | undefined> {
  try {
    await fact;
    return undefined;
  } catch (error) {
    if (error instanceof ClusterError) return error;
    throw error;
  }
}

export function isDenied(error: unknown): error is ClusterError & { readonly id: "not-permitted" } {
  return error instanceof ClusterError && error.id === "not-permitted";
}

import { type Outcome, skip } from "../../../model/check.ts";
import { ClusterError } from "../../../errors.ts";
import type { CloudFacts } from "./facts.ts";

/** The limit for checks that wait for facts about the cloud. The facts have shorter limits of their own. */
export const cloudLimitMs = 35_000;

/**
 * Runs a check that needs the cloud. Skips it if credentials or region are at fault, since those have checks of their
 * own, or if a permission is missing. Sends the check's question without waiting for the answers to the others.
 */
export async function withCloud(facts: CloudFacts, ask: () => Promise<Outcome>): Promise<Outcome> {
  const asked = Promise.allSettled([ask()]);
  const obstacle = await findObstacle(facts);
  if (obstacle !== undefined) return skip(`Not checked: ${obstacle}.`);
  const [answer] = await asked;
  if (answer.status === "fulfilled") return answer.value;
  const reason: unknown = answer.reason;
  if (isDenied(reason)) return skip(`Not checked: this needs the permission ec2:${String(reason.facts["action"])}.`);
  throw reason;
}

/** Returns the reason why the region can't be asked, in words; `undefined` if it answers. */
export async function findObstacle(facts: CloudFacts): Promise<string | undefined> {
  const error = await failureOf(facts.defaultGroups());
  if (error === undefined || isDenied(error)) return undefined;
  switch (error.id) {
    case "no-credentials":
      return "there are no credentials";
    case "credentials-refused":
      return "the cloud refused the credentials";
    case "region-not-enabled":
      return "the region cannot be used";
    default:
      return "the cloud's API does not answer";
  }
}

/** Returns the error that a fact failed with; `undefined` if the fact is known. Throws bugs. */
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

import { messageOf } from "../../../errors.ts";
import { type Check, fail, type Outcome, pass, skip, warn } from "../../../model/check.ts";
import type { Clock } from "../../../system/runtime.ts";
import type { CloudApi } from "../api/api.ts";
import type { CloudFacts } from "./facts.ts";
import { cloudLimitMs, failureOf, findObstacle, isDenied, withCloud } from "./with-cloud.ts";

/** Credentials that expire sooner than this may expire in the middle of a create. */
const shortLifeMs = 15 * 60_000;
/**
 * The largest clock difference that the API accepts in a request. Beyond it, everything that this machine says about
 * time is wrong too.
 */
const allowedSkewMs = 5 * 60_000;

/** Checks whether the cloud lets this machine in: as which account, in which region, and with a correct clock. */
export function accessChecks(facts: CloudFacts, region: string, clock: Clock): readonly Check[] {
  return [
    { name: "credentials", limitMs: cloudLimitMs, run: () => checkCredentials(facts) },
    { name: "account", limitMs: cloudLimitMs, run: () => withCloud(facts, () => tellAccount(facts)) },
    { name: "region", limitMs: cloudLimitMs, run: () => checkRegion(facts, region) },
    { name: "clock", limitMs: cloudLimitMs, run: () => checkClock(facts, clock) },
  ];
}

async function checkCredentials(facts: CloudFacts): Promise<Outcome> {
  const missing = await failureOf(facts.api());
  if (missing !== undefined) return fail(messageOf(missing), missing.hint ?? "Set credentials.");
  const api = await facts.api();
  const refusal = await failureOf(facts.defaultGroups());
  if (refusal?.id === "credentials-refused") return fail(messageOf(refusal), refusal.hint ?? "Renew the credentials.");
  if ((await findObstacle(facts)) !== undefined && refusal?.id !== "region-not-enabled") {
    return skip(`Found (${api.credentialSource}), but not tested: the cloud's API does not answer.`);
  }
  return judgeLife(api);
}

function judgeLife(api: CloudApi): Outcome {
  const { credentialSource: source, credentialsExpireAt: end } = api;
  if (end === undefined) return pass(`Valid, from ${source}`, ["It is not known whether they expire."]);
  const leftMs = end.getTime() - api.now();
  const left = `at ${end.toISOString()}, in ${Math.max(0, Math.floor(leftMs / 60_000))} min`;
  if (leftMs >= shortLifeMs) return pass(`Valid, from ${source}`, [`They expire ${left}.`]);
  return warn(
    `The credentials from ${source} expire soon: ${left}.`,
    "Renew the session before you create a cluster. For SSO: aws sso login",
  );
}

/** The program has no client for the identity service, but every security group names its owner. */
async function tellAccount(facts: CloudFacts): Promise<Outcome> {
  const [group] = await facts.defaultGroups();
  if (group?.OwnerId === undefined)
    return skip("Not known: the account has no network in the region from which to read it.");
  return pass(group.OwnerId);
}

async function checkRegion(facts: CloudFacts, region: string): Promise<Outcome> {
  const error = await failureOf(facts.defaultGroups());
  if (error === undefined || isDenied(error)) return pass(`${region} can be used`);
  if (["no-credentials", "credentials-refused"].includes(error.id) || (await failureOf(facts.api())) !== undefined) {
    return skip(`Not checked: ${await findObstacle(facts)}.`);
  }
  throw error;
}

async function checkClock(facts: CloudFacts, clock: Clock): Promise<Outcome> {
  const error = await failureOf(facts.defaultGroups());
  const wasAnswered = error === undefined || answers.has(error.id);
  if (!wasAnswered) return skip(`Not checked: ${await findObstacle(facts)}.`);
  const behindMs = (await facts.api()).now() - clock.now();
  const seconds = Math.round(Math.abs(behindMs) / 1000);
  // The API gives its time in whole seconds.
  if (seconds <= 1) return pass("Agrees with the cloud's");
  const text = `This machine's clock is ${seconds} s ${behindMs > 0 ? "behind" : "ahead of"} the cloud's`;
  if (Math.abs(behindMs) < allowedSkewMs) return pass(text);
  return fail(`${text}.`, "Correct it, preferably with time synchronization: sudo timedatectl set-ntp true");
}

/** Failures that came from the API itself, so its time is known. */
const answers: ReadonlySet<string> = new Set(["credentials-refused", "not-permitted", "region-not-enabled"]);

import { clockText } from "../lifetime.ts";
import { endText } from "../../../system/amounts.ts";
import { join } from "node:path";
import { hintOf, messageOf } from "../../../errors.ts";
import { type Check, type Outcome, fail, pass, skip, warn } from "../../../model/check.ts";
import { creationDirectory, creationFiles } from "../../../store/creation-folder.ts";
import { stateFolder } from "../../../store/state-folder.ts";
import { isAccessible } from "../../../system/files/private-file.ts";
import type { Clock, Environment, Work } from "../../../system/runtime.ts";
import { withForeignResources } from "../../shared/foreign-resource.ts";
import { rangesOf } from "../admission.ts";
import type { CloudApi } from "../api/api.ts";
import { isAllowedAddress } from "../launch/look-at-machines.ts";
import type { Group, Machine } from "../read-machines.ts";
import { findLeftovers } from "../remove-expired.ts";
import {
  type CheckedDefaults,
  type CloudFacts,
  cloudCheck,
  cloudFacts,
  cloudLimitMs,
  failureOf,
  findObstacle,
  isDenied,
} from "./facts.ts";
import { launchChecks, permissionChecks } from "./permissions.ts";

/**
 * Returns `doctor`'s checks of the cloud, in display order. They only send read-only requests and
 * dry runs. The first check that needs an answer sends the request; the signal ends them all.
 */
export function cloudChecks(work: Work, defaults: CheckedDefaults): readonly Check[] {
  const { region } = defaults;
  const facts = cloudFacts(work, defaults);
  return [
    ...accessChecks(facts, region, work.clock),
    ...permissionChecks(facts, defaults),
    ...launchChecks(facts, defaults),
    adminAddressCheck(facts, { region, environment: work.environment }),
    leftoversCheck(facts, region),
  ];
}

/** Credentials that expire sooner than this may expire in the middle of a create. */
const shortLifeMs = 15 * 60_000;
/** The largest clock difference that the API accepts in a request. */
const allowedSkewMs = 5 * 60_000;

/** Checks whether the cloud lets this machine in: as which account, in which region, and with a correct clock. */
export function accessChecks(facts: CloudFacts, region: string, clock: Clock): readonly Check[] {
  return [
    { name: "credentials", limitMs: cloudLimitMs, run: () => checkCredentials(facts) },
    cloudCheck(facts, "account", () => checkAccount(facts)),
    { name: "region", limitMs: cloudLimitMs, run: () => checkRegion(facts, region) },
    { name: "clock", limitMs: cloudLimitMs, run: () => checkClock(facts, clock) },
  ];
}

async function checkCredentials(facts: CloudFacts): Promise<Outcome> {
  const missing = await failureOf(facts.api());
  if (missing !== undefined) return fail(messageOf(missing), hintOf(missing) ?? "Set credentials.");
  const api = await facts.api();
  const refusal = await failureOf(facts.defaultGroups());
  if (refusal?.id === "credentials-refused")
    return fail(messageOf(refusal), hintOf(refusal) ?? "Renew the credentials.");
  if ((await findObstacle(facts)) !== undefined && refusal?.id !== "region-not-enabled") {
    return skip(
      `Found (${api.credentialSource}), but not tested: the cloud's API does not answer.`,
    );
  }
  return judgeLife(api);
}

function judgeLife(api: CloudApi): Outcome {
  const { credentialSource: source, credentialsExpireAt: end } = api;
  if (end === undefined)
    return pass(`Valid, from ${source}`, ["It is not known whether they expire."]);
  const leftMs = end.getTime() - api.now();
  const left = `at ${endText(end, api.now())}`;
  if (leftMs >= shortLifeMs) return pass(`Valid, from ${source}`, [`They expire ${left}.`]);
  return warn(
    `The credentials from ${source} expire soon: ${left}.`,
    "Renew the session before you create a cluster. For SSO: aws sso login",
  );
}

/** The program has no client for the identity service, but every security group names its owner. */
async function checkAccount(facts: CloudFacts): Promise<Outcome> {
  const [group] = await facts.defaultGroups();
  if (group?.OwnerId === undefined)
    return skip("Not known: the account has no network in the region from which to read it.");
  return pass(group.OwnerId);
}

async function checkRegion(facts: CloudFacts, region: string): Promise<Outcome> {
  const error = await failureOf(facts.defaultGroups());
  if (error === undefined || isDenied(error)) return pass(`${region} can be used`);
  if (
    ["no-credentials", "credentials-refused"].includes(error.id) ||
    (await failureOf(facts.api())) !== undefined
  ) {
    return skip(`Not checked: ${await findObstacle(facts)}.`);
  }
  throw error;
}

async function checkClock(facts: CloudFacts, clock: Clock): Promise<Outcome> {
  const error = await failureOf(facts.defaultGroups());
  const wasAnswered = error === undefined || answers.has(error.id);
  if (!wasAnswered) return skip(`Not checked: ${await findObstacle(facts)}.`);
  const behindMs = (await facts.api()).now() - clock.now();
  // The API gives its time in whole seconds.
  if (Math.round(Math.abs(behindMs) / 1000) <= 1) return pass("Agrees with the cloud's");
  const text = clockText(behindMs);
  if (Math.abs(behindMs) < allowedSkewMs) return pass(text);
  return fail(
    `${text}.`,
    "Correct it, preferably with time synchronization:\n    sudo timedatectl set-ntp true",
  );
}

/** Failures that came from the API itself, so its time is known. */
const answers: ReadonlySet<string> = new Set([
  "credentials-refused",
  "not-permitted",
  "region-not-enabled",
]);

const sshPort = 22;

interface KeyLocation {
  readonly region: string;
  readonly environment: Environment;
}

/** Checks which address a create would admit, and whether this machine's clusters still admit it: addresses change. */
export function adminAddressCheck(facts: CloudFacts, keys: KeyLocation): Check {
  return {
    name: "admin address",
    limitMs: cloudLimitMs,
    run: () => checkAdminAddress(facts, keys),
  };
}

async function checkAdminAddress(facts: CloudFacts, keys: KeyLocation): Promise<Outcome> {
  const { region } = keys;
  const address = await facts.address();
  const seen = `This computer's public address is ${address}`;
  const failures = await Promise.all([facts.instances(), facts.groups()].map(failureOf));
  if (failures.some((failure) => failure !== undefined))
    return pass(`${seen}; it is not known whether clusters allow it`);
  const clusters = await clustersOfThisMachine(
    (await facts.instances()).machines,
    (await facts.groups()).groups,
    keys,
  );
  const closed = clusters.filter(({ cidrs }) => !isAllowedAddress(address, cidrs));
  if (closed.length === 0)
    return pass(clusters.length === 0 ? seen : `${seen}, and the clusters created here allow it`);
  const named = closed.map(
    ({ id, groupId, cidrs }) => `${id} (security group ${groupId}: ${cidrs.join(", ") || "none"})`,
  );
  return warn(
    `${seen}, which is not allowed to reach ${closed.length === 1 ? "cluster" : "clusters"} ${named.join("; ")}.`,
    `Allow it: ${closed.map(({ id }) => `cluster-cloud admit --cloud-region ${region} -c ${id}`).join("; ")}`,
  );
}

/** Returns the clusters whose key is on this machine, with the ranges that may log in. Nobody logs in to others from here. */
async function clustersOfThisMachine(
  machines: readonly Machine[],
  groups: readonly Group[],
  { region, environment }: KeyLocation,
) {
  const living = machines.filter(({ state }) => ["starting", "running"].includes(state));
  const used = new Set(living.flatMap(({ groupIds }) => groupIds));
  const root = join(stateFolder(environment), "cloud", region);
  const found = await Promise.all(
    groups.map(async (group) => {
      const { clusterId, creationId } = group;
      const { privateKey } = creationFiles(creationDirectory(root, clusterId, creationId));
      if (!used.has(group.id) || !(await isAccessible(privateKey))) return undefined;
      return { id: clusterId, groupId: group.id, cidrs: loginRanges(group) };
    }),
  );
  return found.filter((cluster) => cluster !== undefined);
}

function loginRanges(group: Group): readonly string[] {
  const rules = group.rules.filter(
    ({ IpProtocol, FromPort = 0, ToPort = 65_535 }) =>
      IpProtocol === "-1" || (IpProtocol === "tcp" && FromPort <= sshPort && ToPort >= sshPort),
  );
  return [...new Set(rules.flatMap(rangesOf))];
}

/**
 * Reports what ended clusters left in the region, and things that only look like ours. Groups cost nothing; machines
 * that outlived their deadline do.
 */
export const leftoversCheck = (facts: CloudFacts, region: string): Check =>
  cloudCheck(facts, "leftovers", () => checkLeftovers(facts, region));

async function checkLeftovers(facts: CloudFacts, region: string): Promise<Outcome> {
  const [api, instances, groups] = await Promise.all([
    facts.api(),
    facts.instances(),
    facts.groups(),
  ]);
  const advice = `Find out who created or changed it in region ${region}, and remove its tags that begin with cluster-e2e:`;
  const outcome = judge(findLeftovers({ ...instances, ...groups }, api.now()), region, api.now());
  return withForeignResources(
    outcome,
    [...instances.foreignResources, ...groups.foreignResources],
    advice,
  );
}

function judge(left: ReturnType<typeof findLeftovers>, region: string, nowMs: number): Outcome {
  const origin = ({ clusterId, expiresAt }: Machine | Group): string =>
    `(cluster ${clusterId}${expiresAt === undefined ? "" : `, which ended ${endText(expiresAt, nowMs)}`})`;
  const things = [
    ...left.machines.map((machine) => `machine ${machine.id} ${origin(machine)}`),
    ...left.groups.map((group) => `security group ${group.id} ${origin(group)}`),
  ];
  if (things.length === 0) return pass("None");
  return warn(
    `Expired clusters have left ${things.join("; ")}.`,
    `The next create in this region removes ${things.length === 1 ? "it" : "them"}: cluster-cloud create --cloud-region ${region} …`,
  );
}

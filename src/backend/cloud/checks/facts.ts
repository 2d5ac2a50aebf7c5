import { withinLimit } from "../../../system/time-limit.ts";
import type { InstanceTypeInfo, SecurityGroup, Subnet } from "@aws-sdk/client-ec2";
import { ClusterError, hasErrorId } from "../../../errors.ts";
import { moreDetail } from "../../../references.ts";
import { type Check, type Outcome, skip } from "../../../model/check.ts";
import { once } from "../../../system/concurrency.ts";
import type { Work } from "../../../system/runtime.ts";
import { type CloudApi, collectPages, describeGroups, describeInstances } from "../api/api.ts";
import { openApi } from "../api/open-api.ts";
import { withRegionAdvice } from "../api/region-advice.ts";
import { type LaunchImage, findImage } from "../launch/images.ts";
import { findInstanceType } from "../launch/instance-types.ts";
import { checkAddress, isUsable } from "../launch/network.ts";
import { offeredZones } from "../plan.ts";
import {
  type GroupReading,
  type MachineReading,
  readGroups,
  readMachines,
} from "../read-machines.ts";

/** The values that `create` uses for options that aren't given. */
export interface CheckedDefaults {
  readonly region: string;
  readonly distribution: string;
  readonly instanceType: string;
}

type Ask<Answer> = (api: CloudApi, signal: AbortSignal) => Promise<Answer>;

/**
 * Facts about the cloud that several checks share. Each is requested once, when first needed. The
 * requests change nothing.
 */
export interface CloudFacts {
  /** Throws the same errors as openApi, above all `no-credentials`. */
  readonly api: () => Promise<CloudApi>;
  /**
   * For a question that only one check asks. Like all the others, throws `deadline-passed` if no
   * answer comes in time.
   */
  readonly inTime: <Answer>(ask: Ask<Answer>) => Promise<Answer>;
  /**
   * The `default` security group of each network. It names the account that owns it, and a successful answer shows that
   * credentials and region are good. Throws `region-not-enabled` if the region is at fault.
   */
  readonly defaultGroups: () => Promise<readonly SecurityGroup[]>;
  readonly instances: () => Promise<MachineReading>;
  readonly groups: () => Promise<GroupReading>;
  /** The subnets of the default network. */
  readonly subnets: () => Promise<readonly Subnet[]>;
  /** The newest image of the default distribution. */
  readonly image: () => Promise<LaunchImage>;
  /** Of the default instance type. Undefined if the region doesn't have it. */
  readonly instanceType: () => Promise<InstanceTypeInfo | undefined>;
  /** The zones that offer the default instance type. */
  readonly zones: () => Promise<readonly string[]>;
  /** The address from which this machine is seen. */
  readonly address: () => Promise<string>;
}

interface Limit {
  readonly what: string;
  readonly limitMs: number;
  readonly hint: string;
}

const opening: Limit = {
  what: "Finding credentials",
  limitMs: 15_000,
  hint: "Run the credential process or the sign-on of the profile by hand, and check the network.",
};
const request: Limit = {
  what: "A request to the cloud's API",
  limitMs: 15_000,
  hint: `Check the network and the proxy variables. ${moreDetail("-vv", "every request")}`,
};

/** Requests each fact once, when the first check needs it, and keeps the result, even if it is a failure. */
export function cloudFacts(work: Work, defaults: CheckedDefaults): CloudFacts {
  const { region } = defaults;
  const opened = once(() =>
    within(opening, (bounded) => openApi({ ...work, signal: bounded }, region), work.signal),
  );
  const api = once(async () => (await opened())(region));
  const inTime = async <Answer>(ask: Ask<Answer>): Promise<Answer> => {
    const here = await api();
    return within(request, (bounded) => ask(here, bounded), work.signal);
  };
  const asked = <Answer>(ask: Ask<Answer>) => once(async () => inTime(ask));
  const defaultGroups = asked(async (here, bounded) => {
    const ask = () => describeDefaultGroups(here, bounded);
    return withRegionAdvice(await opened(), region, ask, bounded);
  });
  return {
    api,
    inTime,
    defaultGroups,
    instances: asked(async (here, bounded) =>
      readMachines(await describeInstances(here, "all", bounded)),
    ),
    groups: asked(async (here, bounded) => readGroups(await describeGroups(here, "all", bounded))),
    subnets: asked(describeDefaultSubnets),
    image: asked((here, bounded) => findImage(here, defaults.distribution, undefined, bounded)),
    instanceType: asked((here, bounded) => findInstanceType(here, defaults.instanceType, bounded)),
    zones: asked((here, bounded) => offeredZones(here, defaults.instanceType, bounded)),
    address: once(() => checkAddress(work)),
  };
}

/** Throws `deadline-passed` at the limit, so that the message names the fact, not the checks that wait for it. */
async function within<Value>(
  { what, limitMs, hint }: Limit,
  ask: (signal: AbortSignal) => Promise<Value>,
  signal: AbortSignal,
): Promise<Value> {
  const fail = (cause: unknown): never => {
    throw new ClusterError("deadline-passed", `${what} took longer than ${limitMs / 1000} s.`, {
      hint,
      cause,
    });
  };
  return await withinLimit(limitMs, ask, fail, signal);
}

async function describeDefaultGroups(
  api: CloudApi,
  signal: AbortSignal,
): Promise<readonly SecurityGroup[]> {
  const Filters = [{ Name: "group-name", Values: ["default"] }];
  const query = { Filters, MaxResults: 1000 };
  return await collectPages(
    api,
    ["DescribeSecurityGroups", query],
    ({ SecurityGroups }) => SecurityGroups,
    signal,
  );
}

async function describeDefaultSubnets(
  api: CloudApi,
  signal: AbortSignal,
): Promise<readonly Subnet[]> {
  const Filters = [{ Name: "default-for-az", Values: ["true"] }];
  const subnets = await collectPages(
    api,
    ["DescribeSubnets", { Filters }],
    ({ Subnets }) => Subnets,
    signal,
  );
  return subnets.filter(isUsable);
}

/** The limit for checks that wait for facts about the cloud. The facts have shorter limits of their own. */
export const cloudLimitMs = 35_000;

/** Returns a check that needs the cloud; see `withCloud`. */
export const cloudCheck = (
  facts: CloudFacts,
  name: string,
  ask: () => Promise<Outcome>,
): Check => ({
  name,
  limitMs: cloudLimitMs,
  run: () => withCloud(facts, ask),
});

/**
 * Runs a check that needs the cloud. Skips it if credentials or region are at fault, since those have checks of their
 * own, or if a permission is missing. Sends the check's question without waiting for the answers to the others.
 */
async function withCloud(facts: CloudFacts, ask: () => Promise<Outcome>): Promise<Outcome> {
  const asked = Promise.allSettled([ask()]);
  const obstacle = await findObstacle(facts);
  if (obstacle !== undefined) return skip(`Not checked: ${obstacle}.`);
  const [answer] = await asked;
  if (answer.status === "fulfilled") return answer.value;
  const reason: unknown = answer.reason;
  if (isDenied(reason))
    return skip(`Not checked: this needs the permission ec2:${String(reason.facts["action"])}.`);
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

export const isDenied = (
  error: unknown,
): error is ClusterError & { readonly id: "not-permitted" } => hasErrorId(error, "not-permitted");

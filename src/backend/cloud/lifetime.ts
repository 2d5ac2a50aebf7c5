import type { Machine } from "./read-machines.ts";

const pricesAsOf = "2025-06-01";

/**
 * US dollars per hour, on demand, Linux, in us-west-2. Source: https://aws.amazon.com/ec2/pricing/on-demand/
 * The program doesn't know the price of any other type.
 */
const hourly: Readonly<Record<string, number>> = {
  "t3.small": 0.0208,
  "t3.medium": 0.0416,
  "t3.large": 0.0832,
  "t3.xlarge": 0.1664,
  "t3.2xlarge": 0.3328,
  "m4.large": 0.1,
  "m4.xlarge": 0.2,
  "m4.2xlarge": 0.4,
  "m5.large": 0.096,
  "m5.xlarge": 0.192,
  "m5.2xlarge": 0.384,
  "m5.4xlarge": 0.768,
  "m6i.large": 0.096,
  "m6i.xlarge": 0.192,
  "m6i.2xlarge": 0.384,
  "m6i.4xlarge": 0.768,
  "c5.large": 0.085,
  "c5.xlarge": 0.17,
  "c5.2xlarge": 0.34,
  "r5.large": 0.126,
  "r5.xlarge": 0.252,
  "r5.2xlarge": 0.504,
};

/** Other regions, storage and the public address cost more than the table says. This covers them nearly everywhere. */
const surcharge = 1.25;

/**
 * Returns the maximum cost in US dollars of these machines over a cluster's lifetime; undefined if
 * the price is unknown.
 */
export function maximumCost(instanceType: string, machines: number): number | undefined {
  const price = hourly[instanceType];
  if (price === undefined) return undefined;
  const dollars = price * surcharge * (lifetimeMs / 3_600_000) * machines;
  return Math.round(dollars * 100) / 100;
}

/** Such as `at most about $0.96 (4 × m5.large …)`. */
export function costText(instanceType: string, machines: number): string {
  const dollars = maximumCost(instanceType, machines);
  const what = `${machines} × ${instanceType} for two hours`;
  if (dollars === undefined)
    return `price unknown (${what}); storage and public addresses cost extra`;
  return `about $${dollars.toFixed(2)} (${what}, prices of ${pricesAsOf}); licensed images cost extra`;
}

/** Every cloud cluster ends this long after its launch. */
export const lifetimeMs = 2 * 60 * 60 * 1000;

/**
 * Whether a machine has outlived its cluster. Anyone who may tag can change the deadline in its
 * tag, but not the API's launch time, so both must be over: a changed tag neither ends a running
 * cluster nor frees its id.
 */
export function isPastDeadline(
  { expiresAt, launchedAt }: Pick<Machine, "expiresAt" | "launchedAt">,
  nowMs: number,
): boolean {
  if (expiresAt === undefined || launchedAt === undefined) return false;
  return Math.max(expiresAt.getTime(), launchedAt.getTime() + lifetimeMs) < nowMs;
}

/** Smaller differences between this machine's clock and the cloud's don't matter to anyone who reads times left. */
export const shownSkewMs = 60_000;

export const clockText = (behindMs: number): string =>
  `This computer's clock is ${Math.round(Math.abs(behindMs) / 1000)} s ${behindMs > 0 ? "behind" : "ahead of"} the cloud's`;

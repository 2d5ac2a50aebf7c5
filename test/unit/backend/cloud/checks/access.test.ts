/** What doctor says about credentials, region and clock. */
import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { accessChecks } from "../../../../../src/backend/cloud/checks/checks.ts";
import type { CloudFacts } from "../../../../../src/backend/cloud/checks/facts.ts";
import { ClusterError, type ErrorId } from "../../../../../src/errors.ts";
import { outcomeText } from "../../../../support/outcome-text.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const unasked = (): Promise<never> => Promise.reject(new Error("nobody should ask this"));
const nowMs = Date.parse("2026-01-01T00:00:00Z");
const minute = 60_000;

interface Known {
  /** How far the API's clock is ahead of this machine's. */
  readonly aheadMs?: number;
  readonly credentialsLastMs?: number;
  /** The failure of the request for the default groups. */
  readonly failure?: ErrorId;
  readonly opening?: ErrorId;
}

/** `pass: a message`, of the check with this name. */
async function told(
  name: string,
  { aheadMs = 0, credentialsLastMs, failure, opening }: Known,
): Promise<string> {
  const fail = async (id: ErrorId): Promise<never> =>
    Promise.reject(new ClusterError(id, `${id}!`, { hint: "Do it." }));
  const end = credentialsLastMs === undefined ? undefined : new Date(nowMs + credentialsLastMs);
  const api = {
    credentialSource: "a test",
    now: () => nowMs + aheadMs,
    ...(end !== undefined && { credentialsExpireAt: end }),
  } as unknown as CloudApi;
  const failed = failure ?? opening;
  const facts: CloudFacts = {
    api: async () => (opening === undefined ? api : fail(opening)),
    inTime: unasked,
    defaultGroups: async () =>
      failed === undefined ? [{ OwnerId: "111122223333" }] : fail(failed),
    instances: unasked,
    groups: unasked,
    subnets: unasked,
    image: unasked,
    instanceType: unasked,
    zones: unasked,
    address: unasked,
  };
  const clock = { now: () => nowMs, sleep: unasked };
  const check = accessChecks(facts, "us-west-2", clock).find((one) => one.name === name);
  if (check === undefined) throw new Error(`no such check: ${name}`);
  return outcomeText(await check.run(neverAborted));
}

test.each([
  [undefined, "pass: Valid, from a test\nIt is not known whether they expire."],
  [15 * minute, "pass: Valid, from a test\nThey expire at 00:15 UTC (in 15 min)."],
  [
    15 * minute - 1,
    "warn: The credentials from a test expire soon: at 00:14 UTC (in 14 min). → Renew the session before you create a cluster. For SSO: aws sso login",
  ],
  [
    -5 * minute,
    "warn: The credentials from a test expire soon: at 2025-12-31 23:55 UTC (5 min ago). → Renew the session before you create a cluster. For SSO: aws sso login",
  ],
])("credentials that last for %p ms", async (credentialsLastMs, text) => {
  expect(
    await told("credentials", credentialsLastMs === undefined ? {} : { credentialsLastMs }),
  ).toBe(text);
});

test.each([
  ["credentials-refused", "fail: credentials-refused! → Do it."],
  ["not-permitted", "pass: Valid, from a test\nIt is not known whether they expire."],
  ["region-not-enabled", "pass: Valid, from a test\nIt is not known whether they expire."],
  ["cloud-failed", "skip: Found (a test), but not tested: the cloud's API does not answer."],
] as const)("credentials if the API's answer is %s", async (failure, text) => {
  expect(await told("credentials", { failure })).toBe(text);
});

test.each([
  ["the account lacks a permission", { failure: "not-permitted" }, "pass: us-west-2 can be used"],
  [
    "the credentials are refused",
    { failure: "credentials-refused" },
    "skip: Not checked: the cloud refused the credentials.",
  ],
  [
    "there are no credentials",
    { opening: "no-credentials" },
    "skip: Not checked: there are no credentials.",
  ],
  [
    "finding the credentials takes too long",
    { opening: "deadline-passed" },
    "skip: Not checked: the cloud's API does not answer.",
  ],
] as const)("the region if %s", async (_, known, text) => {
  expect(await told("region", known)).toBe(text);
});

test("a region that cannot be used, or does not answer, is the check's failure", async () => {
  for (const failure of ["region-not-enabled", "cloud-failed"] as const)
    expect(await told("region", { failure }).catch((error: unknown) => error)).toMatchObject({
      id: failure,
    });
});

const synchronize =
  "Correct it, preferably with time synchronization:\n    sudo timedatectl set-ntp true";
test.each([
  [1499, "pass: Agrees with the cloud's"],
  [-1499, "pass: Agrees with the cloud's"],
  [2000, "pass: This computer's clock is 2 s behind the cloud's"],
  [-299_000, "pass: This computer's clock is 299 s ahead of the cloud's"],
  [300_000, `fail: This computer's clock is 300 s behind the cloud's. → ${synchronize}`],
  [-300_000, `fail: This computer's clock is 300 s ahead of the cloud's. → ${synchronize}`],
])("a cloud's clock that is %d ms ahead", async (aheadMs, text) => {
  expect(await told("clock", { aheadMs })).toBe(text);
});

test.each([
  ["credentials-refused", "fail: This computer's clock is 3600 s behind"],
  ["not-permitted", "fail: This computer's clock is 3600 s behind"],
  ["region-not-enabled", "fail: This computer's clock is 3600 s behind"],
  ["cloud-failed", "skip: Not checked: the cloud's API does not answer."],
] as const)(
  "the clock is compared if the answer, even %s, came from the API",
  async (failure, text) => {
    expect(await told("clock", { failure, aheadMs: 3_600_000 })).toStartWith(text);
  },
);

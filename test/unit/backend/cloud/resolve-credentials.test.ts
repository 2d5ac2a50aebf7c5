import { afterEach, beforeEach, expect, mock, spyOn, test } from "bun:test";
import type { CredentialSource } from "../../../../src/backend/cloud/credentials/credential-source.ts";
import {
  cachedUntilExpiry,
  resolveCredentials,
} from "../../../../src/backend/cloud/credentials/credentials.ts";
import type { Identity } from "../../../../src/backend/cloud/credentials/machine-role.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const identity: Identity = { accessKeyId: "AKIA", secretAccessKey: "secret" };
const neverEnds = new Promise<Identity>(() => {});
const source = (changes: Partial<CredentialSource>): CredentialSource => ({
  name: "a service",
  profile: undefined,
  provide: async () => identity,
  limitMs: 30_000,
  hint: "Set them.",
  renewal: "Renew them.",
  ...changes,
});

/** Time limits pass at once. */
const limits = mock((_ms: number) => AbortSignal.abort(new Error("The operation timed out.")));
beforeEach(() => void spyOn(AbortSignal, "timeout").mockImplementation(limits));
afterEach(() => {
  mock.restore();
  limits.mockClear();
});

test("a service has the time to answer that its source allows", async () => {
  const error = await failureOf(resolveCredentials(source({}), () => neverEnds, neverAborted));
  expect(error).toMatchObject({
    id: "no-credentials",
    message: "Cannot get credentials from a service: The operation timed out.",
    hint: "Set them.",
  });
  expect(limits.mock.calls).toEqual([[30_000]]);
});

test("a profile has no limit, since its program may ask a person", async () => {
  const profile = source({ name: 'profile "dev"', profile: "dev", limitMs: undefined });
  const provide = async (): Promise<Identity> => Bun.sleep(1).then(() => identity);
  expect(await resolveCredentials(profile, provide, neverAborted)).toBe(identity);
  expect(limits).not.toHaveBeenCalled();
});

test("a profile that fails is named", async () => {
  const profile = source({ name: 'profile "dev"', profile: "dev", limitMs: undefined });
  const provide = () => Promise.reject(new Error("the token has expired.\n"));
  const error = await failureOf(resolveCredentials(profile, provide, neverAborted));
  expect(error.message).toBe('Cannot get credentials from profile "dev": the token has expired.');
  expect(error.facts).toEqual({ source: 'profile "dev"', profile: "dev" });
});

test("an interrupt is no failure of the source", async () => {
  const interrupted = AbortSignal.abort(new Error("interrupted"));
  const profile = source({ limitMs: undefined });
  expect((await failureOf(resolveCredentials(profile, () => neverEnds, interrupted))).message).toBe(
    "interrupted",
  );
});

test.each([
  ["that do not expire", undefined, 1],
  ["that are good for ten minutes", 600_000, 1],
  ["that have four minutes left", 240_000, 2],
])(
  "credentials %s are asked for again only when they are about to expire",
  async (_, leftMs, times) => {
    const asked: Identity[] = [];
    const get = cachedUntilExpiry(async () => {
      const given = {
        ...identity,
        ...(leftMs !== undefined && { expiration: new Date(Date.now() + leftMs) }),
      };
      asked.push(given);
      return given;
    });
    await get();
    await get();
    expect(asked).toHaveLength(times);
  },
);

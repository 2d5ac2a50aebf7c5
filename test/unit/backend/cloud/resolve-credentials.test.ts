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

const minuteMs = 60_000;

test.each([
  ["without an end are requested once", undefined, 1000, 1],
  ["for an hour are renewed five minutes before their end", 60, 54, 1],
  ["for an hour are renewed five minutes before their end", 60, 55, 2],
  ["with four minutes left serve for two of them", 4, 1, 1],
  ["with four minutes left serve for two of them", 4, 2, 2],
  [
    "that have expired by this computer's clock, which may be wrong, serve for a minute",
    -60,
    0.9,
    1,
  ],
  ["that have expired by this computer's clock, which may be wrong, serve for a minute", -60, 1, 2],
])("credentials %s", async (_, minutes, laterMinutes, times) => {
  const clock = { ms: 0 };
  const provide = mock(async () => ({
    ...identity,
    ...(minutes !== undefined && { expiration: new Date(clock.ms + minutes * minuteMs) }),
  }));
  const get = cachedUntilExpiry(provide, () => clock.ms);
  // A program that asks a person asks once for all requests that are under way.
  await Promise.all([get(), get(), get()]);
  clock.ms += laterMinutes * minuteMs;
  await Promise.all([get(), get(), get()]);
  expect(provide).toHaveBeenCalledTimes(times);
});

test("after a failure, credentials are requested again", async () => {
  const provide = mock(async () => identity).mockRejectedValueOnce(new Error("not yet"));
  const get = cachedUntilExpiry(provide);
  expect((await failureOf(get())).message).toBe("not yet");
  expect(await get()).toEqual(identity);
});

test("credentials that can't be renewed serve until they expire, and are requested again each minute", async () => {
  const clock = { ms: 0 };
  const first = { ...identity, expiration: new Date(60 * minuteMs) };
  const provide = mock(async (): Promise<Identity> => {
    throw new Error("the service is down");
  }).mockResolvedValueOnce(first);
  const get = cachedUntilExpiry(provide, () => clock.ms);
  await get();
  const timesAt = async (minutes: number): Promise<number> => {
    clock.ms = minutes * minuteMs;
    expect(await Promise.all([get(), get()])).toEqual([first, first]);
    return provide.mock.calls.length;
  };
  expect(await timesAt(55)).toBe(2);
  expect(await timesAt(55.9)).toBe(2);
  expect(await timesAt(56)).toBe(3);
  expect(await timesAt(59.5)).toBe(4);
  clock.ms = 60 * minuteMs;
  expect((await failureOf(get())).message).toBe("the service is down");
});

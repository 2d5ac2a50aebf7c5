/** Which address of a host is used when IPv6 is announced. */
import { expect, test } from "bun:test";
import { answeringAddress, firstToAnswer } from "../../../src/system/answering-address.ts";
import { failureOf } from "../../support/failure-of.ts";
import { neverAborted } from "../../support/never-aborted.ts";

const hosts = { six: "2001:db8::1", four: "192.0.2.1" };
const answers = async (): Promise<void> => {};
const refuses = async (): Promise<void> => Promise.reject(new Error("refused"));
/** As where a network swallows packets: it ends only with the signal. */
const swallows = async (_: string, signal: AbortSignal): Promise<void> =>
  new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));

test.each([
  ["IPv6 answers", answers, swallows, undefined],
  ["IPv6 is swallowed", swallows, answers, hosts.four],
  ["IPv6 is refused", refuses, answers, hosts.four],
  ["neither is there", refuses, refuses, undefined],
] as const)("if %s", async (_, six, four, expected) => {
  const tryOne = async (host: string, signal: AbortSignal) =>
    (host === hosts.six ? six : four)(host, signal);
  expect(await firstToAnswer(hosts, tryOne, neverAborted)).toBe(expected);
});

test("both attempts end with the first answer, and an interrupt ends them", async () => {
  const ended: string[] = [];
  const tryOne = async (host: string, signal: AbortSignal): Promise<void> => {
    if (host === hosts.four) return;
    signal.addEventListener("abort", () => ended.push(host));
    await swallows(host, signal);
  };
  await firstToAnswer(hosts, tryOne, neverAborted);
  expect(ended).toEqual([hosts.six]);
  const reason = new Error("interrupted");
  const interrupted: unknown = await failureOf(
    firstToAnswer(hosts, swallows, AbortSignal.abort(reason)),
  );
  expect(interrupted).toBe(reason);
});

test.each(["http://127.0.0.1:1/", "http://[::1]:1/"])(
  "the host of %s is used as it is",
  async (url) => {
    expect(await answeringAddress(new URL(url), neverAborted)).toBeUndefined();
  },
);

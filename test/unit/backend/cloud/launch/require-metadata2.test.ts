import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { metadata2Requirer } from "../../../../../src/backend/cloud/launch/require-metadata2.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { failureOf } from "../../../../support/failure-of.ts";

/** Requires version 2 on several machines at once, then on one more. */
async function requireOn(ids: readonly string[], failure?: ClusterError, knowsMetadata2 = false) {
  const [requests, told]: [unknown[], string[]] = [[], []];
  const call = async (_: string, input: unknown): Promise<object> => {
    requests.push(input);
    return failure === undefined ? Promise.resolve({}) : Promise.reject(failure);
  };
  const progress = {
    warn: (text: string) => void told.push(`warn: ${text}`),
    detail: (level: number, text: string) => void told.push(`-${"v".repeat(level)}: ${text}`),
  };
  const require2 = metadata2Requirer({ call } as unknown as CloudApi, { knowsMetadata2 }, progress);
  const on = async (id: string): Promise<void> => require2(id, `node of ${id}`, new AbortController().signal);
  await Promise.all(ids.map(on));
  await on("i-3");
  return { requests, told };
}

test("machines only answer version 2, and only to themselves and not to containers on them", async () => {
  const { requests, told } = await requireOn(["i-1", "i-2"]);
  expect(requests).toEqual(
    ["i-1", "i-2", "i-3"].map((id) => ({ InstanceId: id, HttpTokens: "required", HttpPutResponseHopLimit: 1 })),
  );
  expect(told).toContain("-v: node of i-1: instance metadata now requires version 2");
});

test.each([[["i-1"]], [["i-1", "i-2"]]])(
  "a missing permission is one warning, after which nothing is asked: %j",
  async (ids) => {
    const { requests, told } = await requireOn(ids, new ClusterError("not-permitted", "You may not do that."));
    expect(requests).toHaveLength(ids.length);
    expect(told).toEqual([
      expect.stringMatching(/^warn: Version 1 of the instance metadata stays open .* You may not/),
    ]);
  },
);

test("machines that were launched with version 2 alone need no request; another failure is an error", async () => {
  expect(await requireOn(["i-1"], undefined, true)).toEqual({ requests: [], told: [] });
  expect((await failureOf(requireOn(["i-1"], new ClusterError("cloud-failed", "No answer.")))).id).toBe("cloud-failed");
});

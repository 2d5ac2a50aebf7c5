/** What is said about a region that does not exist or is not enabled. */

import { once } from "node:events";
import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { withRegionAdvice } from "../../../../../src/backend/cloud/api/region-advice.ts";
import { findInOtherRegions, listAllRegions } from "../../../../../src/backend/cloud/records.ts";
import { toTags } from "../../../../../src/backend/cloud/tags.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { outage, refusal } from "../../../../support/scripted-cloud.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

/** Regions that answer with these names, and with the clusters of each. */
function openRegions(
  names: readonly string[] | Error,
  clusters: Readonly<Record<string, Error | "running" | "terminated">> = {},
) {
  const asked: string[] = [];
  const open = (region: string): CloudApi => {
    const call = async (action: string, _: unknown, signal: AbortSignal): Promise<unknown> => {
      // Later than any signal that is aborted at once.
      await Bun.sleep(5);
      signal.throwIfAborted();
      asked.push(`${action} in ${region}`);
      if (action === "DescribeRegions") {
        if (names instanceof Error) throw names;
        return { Regions: names.map((RegionName) => ({ RegionName })) };
      }
      const found = clusters[region];
      if (found instanceof Error) throw found;
      const Tags = toTags(
        "x",
        {
          clusterId: "a",
          creationId: "0123456789abcdef",
          role: "master",
          variant: "oss",
          sshUser: "me",
        },
        [],
      );
      const instance = { InstanceId: "i-00000001", State: { Name: found }, Tags };
      return { Reservations: found === undefined ? [] : [{ Instances: [instance] }] };
    };
    return { region, call } as unknown as CloudApi;
  };
  return { open, asked };
}

const enabled = ["us-west-2", "us-east-1", "eu-west-1"];

test.each([
  ["refused", () => refusal("AuthFailure")],
  ["not answered", outage],
  ["refused for the region", () => refusal("OptInRequired")],
])(
  "if a request is %s in a region that is not enabled, the error lists those that are",
  async (_, failure) => {
    const { open, asked } = openRegions(enabled);
    const error = await failureOf(
      withRegionAdvice(open, "xx-none-1", async () => Promise.reject(failure()), neverAborted),
    );
    expect([error.id, error.message, error.hint]).toEqual([
      "region-not-enabled",
      "Region xx-none-1 does not exist, or is not enabled for the account.",
      "Enabled: eu-west-1, us-east-1, us-west-2.",
    ]);
    expect(asked).toEqual(["DescribeRegions in us-east-1"]);
  },
);

test.each([
  ["the region is enabled", "us-west-2", enabled, outage()],
  ["the enabled regions are not known", "xx-none-1", outage(), outage()],
])("the failure itself is shown if %s", async (_, region, names, failure) => {
  const { open } = openRegions(names);
  const error: unknown = await failureOf(
    withRegionAdvice(open, region, async () => Promise.reject(failure), neverAborted),
  );
  expect(error).toBe(failure);
});

test("in a home region, the other one is asked for the enabled regions", async () => {
  const { open, asked } = openRegions(enabled);
  await failureOf(
    withRegionAdvice(open, "us-east-1", async () => Promise.reject(outage()), neverAborted),
  );
  expect(asked).toEqual(["DescribeRegions in us-west-2"]);
});

test.each([
  ["another refusal", new ClusterError("not-permitted", "No.", { transient: true }), neverAborted],
  ["a final failure", refusal("InvalidParameterValue"), neverAborted],
  ["a bug", new TypeError("x"), neverAborted],
  ["an interrupt", outage(), AbortSignal.abort(new Error("interrupted"))],
])("%s says nothing about the region, so no other one is asked", async (_, failure, signal) => {
  const { open, asked } = openRegions(enabled);
  const error: unknown = await failureOf(
    withRegionAdvice(open, "xx-none-1", async () => Promise.reject(failure), signal),
  );
  expect(error).toBe(failure);
  expect(asked).toEqual([]);
});

test("a cluster is looked for in all other regions, and one that does not answer is named", async () => {
  const { open, asked } = openRegions([...enabled, "sa-east-1", "xx bad"], {
    "us-west-2": "running",
    "us-east-1": "running",
    "eu-west-1": "running",
    "sa-east-1": outage(),
  });
  const found = await findInOtherRegions(open, "us-west-2", "a", neverAborted);
  expect(found).toEqual({
    scopes: ["eu-west-1", "us-east-1"],
    unreachable: [{ scope: "sa-east-1", reason: expect.stringContaining("failed to carry out") }],
  });
  expect(asked).not.toContain("DescribeInstances in us-west-2");
  const ended = openRegions(enabled, { "us-east-1": "terminated" });
  expect((await findInOtherRegions(ended.open, "us-west-2", "a", neverAborted)).scopes).toEqual([]);
  const unknown = openRegions(outage());
  expect((await findInOtherRegions(unknown.open, "us-west-2", "a", neverAborted)).scopes).toEqual(
    [],
  );
});

test("an interrupt is not taken for regions without the cluster, or that do not answer", async () => {
  const interruption = new Error("interrupted");
  const controller = new AbortController();
  const { open } = openRegions(enabled);
  const interrupting = (region: string): CloudApi => {
    const api = open(region);
    const call = async (...given: Parameters<CloudApi["call"]>) => {
      const answer = await api.call(...given);
      controller.abort(interruption);
      return answer;
    };
    return { ...api, call };
  };
  const found: unknown = await failureOf(
    findInOtherRegions(interrupting, "us-west-2", "a", controller.signal),
  );
  const listed: unknown = await failureOf(
    listAllRegions(interrupting, "us-west-2", async () => [], controller.signal),
  );
  expect([found, listed]).toEqual([interruption, interruption]);
});

test("an interrupt ends the requests to all regions", async () => {
  const interruption = new Error("interrupted");
  const silent = (controller: AbortController) => (region: string) => {
    const call = async (_action: string, _input: unknown, signal: AbortSignal): Promise<never> => {
      controller.abort(interruption);
      if (!signal.aborted) await once(signal, "abort");
      throw signal.reason;
    };
    return { region, call } as unknown as CloudApi;
  };
  const failure = outage();
  const ask = async (
    task: (open: (region: string) => CloudApi, signal: AbortSignal) => Promise<unknown>,
  ) => {
    const controller = new AbortController();
    return task(silent(controller), controller.signal).catch((error: unknown) => error);
  };
  const asked = [
    ask(async (open, signal) => findInOtherRegions(open, "us-west-2", "a", signal)),
    ask(async (open, signal) => listAllRegions(open, "us-west-2", async () => [], signal)),
    ask(async (open, signal) =>
      withRegionAdvice(open, "us-west-2", async () => Promise.reject(failure), signal),
    ),
  ];
  expect<unknown[]>(await Promise.all(asked)).toEqual([interruption, interruption, failure]);
});

test("a list of everything names each region that does not answer, with the reason", async () => {
  const { open } = openRegions(enabled, {
    "us-east-1": refusal("UnauthorizedOperation"),
    "us-west-2": "running",
    "eu-west-1": "running",
  });
  const read = async (region: string, instances: readonly unknown[]) =>
    instances.map(() => region as never);
  const { clusters, unreachable } = await listAllRegions(open, "us-west-2", read, neverAborted);
  expect<readonly unknown[]>(clusters).toEqual(["eu-west-1", "us-west-2"]);
  expect(unreachable).toEqual([
    { scope: "us-east-1", reason: expect.stringContaining("may not call") },
  ]);
});

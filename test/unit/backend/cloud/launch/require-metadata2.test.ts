/** When version 1 of the instance metadata is closed, and what is said if it can't be. */
import { expect, test } from "bun:test";
import { metadata2Requirer } from "../../../../../src/backend/cloud/launch/look-at-machines.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { outage, refusal, scriptedCloud } from "../../../../support/scripted-cloud.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const names = ["master_0", "agent_0", "agent_1"] as const;

/** Closes version 1 on three machines, at the same time or one after another. */
async function close(knowsMetadata2: boolean, failure?: Error, isConcurrent = true) {
  const cloud = scriptedCloud([], [], () => failure);
  const warnings: string[] = [];
  const progress = { ...cloud.runtime.progress, warn: (text: string) => void warnings.push(text) };
  const requireMetadata2 = metadata2Requirer(cloud.api, { knowsMetadata2 }, progress);
  const tasks = names.map((name) => async () => requireMetadata2(`i-${name}`, name, neverAborted));
  if (isConcurrent) await Promise.all(tasks.map(async (task) => task()));
  else for (const task of tasks) await task();
  return { calls: cloud.calls, warnings, told: cloud.told };
}

test("it is closed on every machine that was launched with it", async () => {
  const { calls, warnings, told } = await close(false);
  expect(calls.map(({ action, input }) => [action, input])).toEqual(
    names.map((name) => [
      "ModifyInstanceMetadataOptions",
      { InstanceId: `i-${name}`, HttpTokens: "required", HttpPutResponseHopLimit: 1 },
    ]),
  );
  expect([warnings, told]).toEqual([
    [],
    names.map((name) => `1: ${name}: instance metadata now requires version 2`),
  ]);
});

test("nothing is requested for machines that were launched without it", async () => {
  expect((await close(true)).calls).toEqual([]);
});

test.each([
  ["at the same time", true, 3],
  ["one after another", false, 1],
])(
  "a missing permission is named once for machines that start %s",
  async (_, isConcurrent, requests) => {
    const { calls, warnings, told } = await close(
      false,
      refusal("UnauthorizedOperation"),
      isConcurrent,
    );
    expect(calls).toHaveLength(requests);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^Version 1 of the instance metadata stays open .* Allow ec2:ModifyInstanceMetadataOptions,/,
      ),
    ]);
    expect(told).toEqual([]);
  },
);

test("any other failure is one of the creation", async () => {
  expect(await failureOf(close(false, outage()))).toMatchObject({ id: "cloud-failed" });
});

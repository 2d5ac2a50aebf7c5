import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { assertOffered } from "../../../../../src/backend/cloud/plan.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const subnets = ["us-west-2a", "us-west-2d"].map((zone) => ({
  id: `subnet-${zone}`,
  vpcId: "vpc-1",
  zone,
}));

async function assertOfferedIn(zones: readonly string[]): Promise<void> {
  const call = async (_: string, { Filters }: object & { readonly Filters?: unknown }) => {
    expect(Filters).toEqual([{ Name: "instance-type", Values: ["m5.large"] }]);
    return { InstanceTypeOfferings: zones.map((Location) => ({ Location })) };
  };
  const api = { region: "us-west-2", call } as unknown as CloudApi;
  return assertOffered(api, { instanceType: "m5.large", subnets }, neverAborted);
}

test("an instance type is refused if no zone offers it, or none with a subnet", async () => {
  await assertOfferedIn(["us-west-2b", "us-west-2a"]);
  expect(await failureOf(assertOfferedIn([]))).toMatchObject({ id: "bad-usage" });
  const elsewhere = await failureOf(assertOfferedIn(["us-west-2c", "us-west-2b"]));
  expect(elsewhere).toMatchObject({
    id: "capacity-lacking",
    facts: { zones: ["us-west-2b", "us-west-2c"] },
  });
});

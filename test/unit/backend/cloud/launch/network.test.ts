import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { findSubnets } from "../../../../../src/backend/cloud/launch/network.ts";
import { failureOf } from "../../../../support/failure-of.ts";

const api = { region: "us-west-2", call: async () => Promise.resolve({ Subnets: [] }) } as unknown as CloudApi;

test.each([
  [undefined, "Region us-west-2 has no default network with a subnet.", { region: "us-west-2" }],
  ["subnet-1", "Region us-west-2 has no usable subnet subnet-1.", { region: "us-west-2", subnet: "subnet-1" }],
])("if the subnet %p isn't there, the error says which was looked for", async (chosen, message, facts) => {
  const failure = await failureOf(findSubnets(api, chosen, new AbortController().signal));
  expect(failure).toMatchObject({ id: "no-default-network", message });
  expect(failure.facts).toEqual(facts);
});

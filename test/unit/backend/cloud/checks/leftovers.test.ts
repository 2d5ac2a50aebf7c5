import { expect, test } from "bun:test";
import type { CloudFacts } from "../../../../../src/backend/cloud/checks/facts.ts";
import { leftoversCheck } from "../../../../../src/backend/cloud/checks/checks.ts";
import { outcomeText } from "../../../../support/outcome-text.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

test.each([
  [1, "The next create in this region removes it:"],
  [2, "The next create in this region removes them:"],
])("if ended clusters have left %d groups, the remedy fits their number", async (count, remedy) => {
  const expired = { clusterId: "old", expiresAt: new Date(0) };
  const groups = Array.from({ length: count }, (_, place) => ({ ...expired, id: `sg-${place}` }));
  const facts = {
    defaultGroups: async () => [],
    api: async () => ({ now: () => 1 }),
    instances: async () => ({ machines: [], foreignResources: [] }),
    groups: async () => ({ groups, foreignResources: [] }),
  } as unknown as CloudFacts;
  const text = outcomeText(await leftoversCheck(facts, "us-west-2").run(neverAborted));
  expect(text).toContain(` → ${remedy} cluster-cloud create --cloud-region us-west-2 …`);
});

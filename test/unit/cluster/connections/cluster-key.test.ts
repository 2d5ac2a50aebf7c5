import { expect, test } from "bun:test";
import { keyMissing } from "../../../../src/cluster/connections/cluster-key.ts";
import { exampleCluster } from "../../../support/install-example.ts";

test.each([
  ["cloud", true],
  ["container", false],
  ["vm", false],
] as const)("if the key of a cluster of the backend %s is missing, the hint names export: %p", (backend, isNamed) => {
  const { id, hint = "" } = keyMissing({ ...exampleCluster([], "oss"), backend });
  expect(id).toBe("key-missing");
  expect(hint.includes("export command")).toBe(isNamed);
  expect(hint).toContain("/nowhere/id_ed25519");
});

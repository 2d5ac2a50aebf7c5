import { expect, test } from "bun:test";
import { engineCheck } from "../../../../src/backend/container/checks.ts";
import type { ContainerFacts } from "../../../../src/backend/container/checks/facts.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import { outcomeText } from "../../../support/outcome-text.ts";

/** What the check says about an engine of this version. */
async function judged(name: "docker" | "podman", version: string): Promise<string> {
  const kind = engineKinds[name];
  const facts = { engine: async () => ({ kind }), told: async () => ({ version, operatingSystem: "Debian" }) };
  const check = engineCheck(facts as unknown as ContainerFacts);
  return outcomeText(await check.run(new AbortController().signal));
}

test.each([
  ["docker", "20.10.0"],
  ["docker", "20.11.3"],
  ["docker", "23.0.1"],
  ["docker", "27"],
  ["podman", "4.0.0"],
  ["podman", "5.4"],
] as const)("%s %s is new enough", async (name, version) => {
  expect(await judged(name, version)).toBe(`pass: ${engineKinds[name].title} ${version} (Debian)`);
});

test.each([
  ["docker", "20.9.9", "20.10"],
  ["docker", "19.20.0", "20.10"],
  ["docker", "20", "20.10"],
  ["podman", "3.4.4", "4.0"],
] as const)("%s %s is too old, and the advice is how to install a newer one", async (name, version, least) => {
  const text = await judged(name, version);
  expect(text).toStartWith(`warn: ${engineKinds[name].title} ${version} is older than ${least}`);
  expect(text).toContain(engineKinds[name].advice.install);
});

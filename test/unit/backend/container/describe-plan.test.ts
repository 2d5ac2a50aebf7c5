import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import {
  type ContainerBackendOptions,
  type ContainerOptions,
  readContainerOptions,
} from "../../../../src/backend/container/options.ts";
import {
  type ResolvedCreation,
  describePlan,
} from "../../../../src/backend/container/container-creation.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import type { CreationRequest } from "../../../../src/backend/contract.ts";

/** Describes a cluster of four nodes. */
function planned(given: ContainerBackendOptions, resolved: object = {}, lifetimeMs?: number) {
  const request = {
    clusterId: "own",
    counts: { master: 1, agent: 2, public_agent: 1 },
    options: readContainerOptions(given).options,
    lifetimeMs,
  };
  const usual = {
    kind: engineKinds.podman,
    facts: { version: "5.4.0", cgroupVersion: "2" },
    distribution: "debian-12",
    image: { name: "nodes:1", isPresent: true },
    reach: "direct",
    why: "because",
  };
  const { lines, facts } = describePlan(
    request as CreationRequest<ContainerOptions>,
    { ...usual, ...resolved } as unknown as ResolvedCreation,
    { ...systemClock, now: () => Date.parse("2026-01-01T12:00:00.400Z") },
  );
  const shown: object = facts;
  const plain = lines.map(([label, text]) => [label, unmarked(text)] as const);
  return { lines: Object.fromEntries(plain), facts: shown };
}

test("a plan without options is described with the engine's defaults", () => {
  const { lines, facts } = planned({});
  expect(lines).toEqual({
    Cluster: "own",
    Engine: "Podman 5.4.0, cgroups 2",
    Distribution: "debian-12",
    Image: "nodes:1 (present)",
    Containers: "4: 1 master, 2 agents, 1 public agent",
    "Per container": "memory: no limit, CPUs: no limit",
    Network: "its own bridge",
    Reached: "at the containers' own addresses: because",
    Volumes: "none",
    Ends: "when you run the destroy command",
  });
  expect(facts).toEqual({
    cluster: "own",
    engine: { name: "podman", version: "5.4.0", cgroupVersion: "2" },
    distribution: "debian-12",
    image: { name: "nodes:1", isPresent: true },
    counts: { masters: 1, agents: 2, publicAgents: 1 },
    reach: "direct",
    volumes: [],
  });
});

test("a plan with a lifetime says when the cluster ends, in whole seconds", () => {
  const { lines, facts } = planned({}, {}, 5_400_000);
  expect(lines["Ends"]).toBe("13:30 UTC (in 1 h 30 min), or when you run the destroy command");
  expect(facts).toMatchObject({ expiresAt: "2026-01-01T13:30:00.000Z" });
});

test("a plan for nodes that are offline says so", () => {
  const { lines, facts } = planned({ offline: true });
  expect(lines).toMatchObject({
    Network: "its own bridge; nodes reach each other and nothing else",
  });
  expect(facts).toMatchObject({ offline: true });
});

test("a plan with options shows all of them", () => {
  const volumes = ["/a:/b", "/c:/d:ro"];
  const { lines, facts } = planned(
    { memory: "2g", cpus: "1.5", customVolumes: volumes },
    { reach: "engine" },
  );
  expect(lines).toMatchObject({
    "Per container": "memory: 2g, CPUs: 1.5",
    Reached: "through Podman: because",
    Volumes: "/a:/b, /c:/d:ro",
  });
  expect(facts).toMatchObject({ reach: "engine", volumes, memory: "2g", cpus: "1.5" });
});

test.each([
  ["is pulled", {}, "nodes:1 (will be pulled)"],
  ["is built", { containerfile: "FROM debian:12" }, "nodes:1 (will be built, which takes minutes)"],
])("an image that is missing and %s is announced", (_, source, shown) => {
  const { lines, facts } = planned({}, { image: { name: "nodes:1", isPresent: false, ...source } });
  expect(lines).toMatchObject({ Image: shown });
  expect(facts).toMatchObject({ image: { isPresent: false } });
});

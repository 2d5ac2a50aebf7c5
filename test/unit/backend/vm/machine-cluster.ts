import type { NodeFacts, StoredCluster } from "../../../../src/backend/vm/cluster-facts.ts";
import { privateAddress } from "../../../../src/backend/vm/machines/private-network.ts";
import {
  type MachinePlan,
  machineArguments,
} from "../../../../src/backend/vm/machines/machine-arguments.ts";
import { type MachineLife } from "../../../../src/backend/vm/machines/machine-life.ts";
import { machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { toCluster } from "../../../../src/backend/vm/records.ts";

export const directory = "/state/vm/a,b-c1";

const node = (place: number): NodeFacts => ({
  id: `vm-0123abcd-${place}`,
  role: place === 0 ? "master" : "agent",
  index: Math.max(0, place - 1),
  privateAddress: privateAddress(place),
  ports: { ssh: 4000 + place, http: 5000 + place, https: 6000 + place },
});

export function words(
  place: number,
  count: number,
  accelerator: "kvm" | "tcg" = "tcg",
  {
    name = "x64",
    webUi,
    cpuModel,
    ...more
  }: Partial<
    Pick<
      MachinePlan,
      "webUi" | "memory" | "isOfTemplate" | "node" | "hasIpv6" | "options" | "opensPortsLater"
    >
  > & {
    readonly name?: string;
    readonly cpuModel?: string;
  } = {},
): string {
  const architecture = architectureOf(name);
  const options = { memoryMegabytes: 2048, cpus: 3, diskMegabytes: 20_480, cpuModel };
  const files = machineFiles(directory, node(place));
  return machineArguments({
    architecture,
    accelerator,
    // As builds for macOS.
    isSandboxed: accelerator === "tcg",
    options,
    files,
    node: node(place),
    webUi,
    place,
    sockets: { folder: "/tmp/a,b", count },
    isOfTemplate: false,
    hasIpv6: true,
    ...more,
  }).join(" ");
}

export const stored: StoredCluster = {
  directory,
  facts: {
    schemaVersion: 1,
    clusterId: "a,b",
    creationId: "c1",
    variant: "oss",
    distribution: "debian-12",
    counts: { master: 1, agent: 1, public_agent: 0 },
    createdAt: "2026-01-01T00:00:00.000Z",
    createdBy: "1",
    nodes: [node(0), node(1)],
  },
};

export const calm = { isRestarted: false, isAbandoned: false };

export const observed = (lives: readonly MachineLife[], fate = calm) =>
  toCluster(stored, lives, fate);

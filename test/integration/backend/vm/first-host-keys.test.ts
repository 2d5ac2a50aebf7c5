/** The first-boot data in each machine's folder. This needs no QEMU. */
import { expect, test } from "bun:test";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hostKeyPerNode } from "../../../../src/backend/shared/first-boot.ts";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { launchMachines } from "../../../../src/backend/vm/machines/launch.ts";
import { machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import type { Qemu } from "../../../../src/backend/vm/qemu/qemu.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const done = { status: 0, stdout: "", stderr: "" };
const qemu: Qemu = {
  architecture: architectureOf("x64"),
  systemName: "qemu-system-x86_64",
  system: async () => Promise.resolve(done),
  run: async () => Promise.resolve(done),
  image: async () => Promise.resolve(done),
};

test("each machine boots with its own host key, which the first login expects", async () => {
  await using folder = await scratchFolder();
  const names = [
    { role: "master", index: 0 } as const,
    { role: "agent", index: 0 } as const,
    { role: "agent", index: 1 } as const,
  ];
  const nodes = names.map(({ role, index }, place) => ({
    id: `vm-0123abcd-${place}`,
    role,
    index,
    privateAddress: `10.93.0.${place + 2}`,
    ports: { ssh: 40_000 + place, http: 41_000 + place, https: 42_000 + place },
  }));
  await mkdir(join(folder.path, "machines"));
  // The private network would create it.
  for (const place of nodes.keys()) await writeFile(join(folder.path, `socket-${place}`), "");
  const firstHostKeys = hostKeyPerNode();
  const plan = {
    directory: folder.path,
    facts: {
      clusterId: "keys",
      creationId: "0123abcd",
      variant: "oss",
      distribution: "debian-12",
      counts: { master: 1, agent: 2, public_agent: 0 },
      createdAt: new Date(0).toISOString(),
      createdBy: "1",
      nodes,
    },
    options: { memoryMegabytes: 256, cpus: 1, diskMegabytes: 64 },
    accelerator: "tcg",
    isSandboxed: true,
    firmware: undefined,
    image: { path: "/image", format: "raw", sizeBytes: 1 },
    boot: { user: "e2e", publicKey: "ssh-ed25519 AAAA", deadline: undefined, hosts: [] },
    firstHostKeys,
    sockets: { folder: folder.path, count: nodes.length },
    isOfTemplate: false,
    clock: systemClock,
  } as const;
  await launchMachines(qemu, plan, neverAborted);
  const seeds = await Promise.all(
    nodes.map(async (node) =>
      readFile(join(machineFiles(folder.path, node).seed, "user-data"), "utf8"),
    ),
  );
  const keys = seeds.map((seed) => /"ed25519_public": "(.*)"/.exec(seed)?.[1] ?? "none");
  expect(new Set(keys).size).toBe(nodes.length);
  expect(keys).toEqual(nodes.map((node) => firstHostKeys.of(node).publicKey));
});

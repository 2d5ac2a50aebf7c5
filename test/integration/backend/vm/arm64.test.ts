/** ARM machines on a real QEMU, which can emulate them everywhere. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { hostKeyPerNode } from "../../../../src/backend/shared/first-boot.ts";
import type { NodeFacts } from "../../../../src/backend/vm/cluster-facts.ts";
import { readImageFacts } from "../../../../src/backend/vm/images/image-store.ts";
import { assertBoots } from "../../../../src/backend/vm/machines/boot-problem.ts";
import {
  findFreePorts,
  launchMachines,
  toPorts,
} from "../../../../src/backend/vm/machines/launch.ts";
import { endMachines, machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import { trialLimitsMs, tryHost } from "../../../../src/backend/vm/qemu/accelerator.ts";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { lackingFeatures } from "../../../../src/backend/vm/qemu/features.ts";
import { findFirmware } from "../../../../src/backend/vm/qemu/firmware.ts";
import { openQemu } from "../../../../src/backend/vm/qemu/qemu.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const environment = { PATH: process.env["PATH"] ?? "" };
const qemu = openQemu({ environment, progress: silentProgress }, architectureOf("arm64"));
const missing = ["qemu-system-aarch64", "qemu-img"].find((program) => Bun.which(program) === null);
const firmware =
  missing === undefined ? await findFirmware(qemu, neverAborted).catch(() => undefined) : undefined;
const lack = firmware === undefined ? `no ${missing ?? "firmware"} here` : undefined;

test.skipIf(lack !== undefined)(
  `the trial of an accelerator works on ARM (${lack ?? "here"})`,
  async () => {
    const { trials } = await tryHost(qemu, "linux", trialLimitsMs, neverAborted);
    expect(trials.find(({ accelerator }) => accelerator === "tcg")).toEqual({
      accelerator: "tcg",
      problem: undefined,
    });
  },
);

test.skipIf(lack !== undefined)(
  `QEMU for ARM has what every machine needs (${lack ?? "here"})`,
  async () => {
    expect(await lackingFeatures(qemu, neverAborted)).toEqual([]);
  },
);

test.skipIf(lack !== undefined)(
  "a machine's firmware runs, looks at its disk, and says that it can't boot from it",
  async () => {
    await using folder = await scratchFolder();
    const node: NodeFacts = {
      id: "vm-0123abcd-0",
      role: "master",
      index: 0,
      privateAddress: "10.93.0.2",
      ports: toPorts(await findFreePorts(3)),
    };
    await mkdir(join(folder.path, "machines"));
    await writeFile(join(folder.path, "empty.img"), new Uint8Array(1_048_576));
    const files = machineFiles(folder.path, node);
    await launchMachines(qemu, await planOf(folder.path, node), neverAborted);
    try {
      const machine = { files, hostname: "master-0", name: "master_0" };
      // Older firmware gives up by starting its shell, newer firmware by a line that says so.
      const failure = await bootFailure(machine);
      const text = await readFile(files.console, "utf8");
      expect(text).toContain("UEFI firmware");
      // The first card after the one for random numbers.
      expect(text).toMatch(/BdsDxe: failed to load Boot\d+ "UEFI Misc Device.*Pci\(0x2,0x0\)/);
      expect(failure).toMatchObject({
        id: "machine-failed",
        message: "master_0 cannot become a node: its UEFI finds nothing to start on the disk.",
      });
    } finally {
      await endMachines([files], systemClock, neverAborted);
    }
  },
);

async function planOf(
  directory: string,
  node: NodeFacts,
): Promise<Parameters<typeof launchMachines>[1]> {
  const counts = { master: 1, agent: 0, public_agent: 0 };
  return {
    directory,
    facts: {
      clusterId: "arm",
      creationId: "0123abcd",
      variant: "oss",
      distribution: "debian-12",
      counts,
      createdAt: new Date(0).toISOString(),
      createdBy: "1",
      nodes: [node],
    },
    // More than the default interrupt controller serves.
    options: { memoryMegabytes: 256, cpus: 9, diskMegabytes: 64 },
    accelerator: "tcg",
    isSandboxed: true,
    firmware,
    image: await readImageFacts(qemu, join(directory, "empty.img"), neverAborted),
    boot: {
      user: "e2e",
      publicKey: "ssh-ed25519 AAAA",
      deadline: undefined,
      hosts: [],
    },
    firstHostKeys: hostKeyPerNode(),
    sockets: { folder: directory, count: 1 },
    isOfTemplate: false,
    clock: systemClock,
  };
}

/** The first failure that the machine's console shows. */
async function bootFailure(machine: Parameters<typeof assertBoots>[0]): Promise<unknown> {
  for (;;) {
    try {
      await assertBoots(machine, qemu.architecture, systemClock);
    } catch (error) {
      return error;
    }
    await Bun.sleep(100);
  }
}

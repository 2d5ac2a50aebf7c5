import { platform, totalmem } from "node:os";
import { ClusterError } from "../../errors.ts";
import type { Environment } from "../../system/environment.ts";
import type { CreationRequest } from "../../model/creation.ts";
import { nodeCount } from "../../model/cluster-shape.ts";
import { assertCgroups1, cgroups1Advice } from "../cgroups1.ts";
import { type Accelerator, bestAccelerator, trialLimitsMs, tryAccelerators } from "./accelerator.ts";
import { findFirmware, type Firmware } from "./firmware.ts";
import { cgroups1Distributions, cgroupVersionOf } from "./images.ts";
import { findImage, type MachineImage } from "./image-store.ts";
import { type Qemu, qemuVersion } from "./qemu.ts";
import type { VmOptions } from "./vm-options.ts";

/** The first one with `stream` networks. */
export const streamVersion = [7, 2] as const;

/** What of this machine a creation's options mean. */
export interface ResolvedCreation {
  readonly qemuVersion: string;
  readonly accelerator: Accelerator;
  /** Absent where machines have it built in. */
  readonly firmware: Firmware | undefined;
  readonly image: MachineImage;
}

type Resolving = Pick<CreationRequest<VmOptions>, "distribution" | "options" | "counts" | "needsCgroups1">;

/** Makes nothing. Throws `machine-not-set-up` or `capacity-lacking` where this machine can't serve. */
export async function resolveCreation(
  qemu: Qemu,
  request: Resolving,
  environment: Environment,
  signal: AbortSignal,
): Promise<ResolvedCreation> {
  const { distribution, options } = request;
  assertCgroups1(request.needsCgroups1, {
    name: distribution,
    // What an image of the user's own boots with shows on the node.
    cgroupVersion: options.image === undefined ? cgroupVersionOf(distribution) : undefined,
    advice: cgroups1Advice(cgroups1Distributions),
  });
  const count = nodeCount(request.counts);
  assertMemory(count * request.options.memoryMegabytes, totalmem());
  const [version, trials, firmware, image] = await Promise.all([
    qemuVersion(qemu, signal),
    tryAccelerators(qemu, platform(), trialLimitsMs, signal),
    findFirmware(qemu, signal),
    findImage(request, qemu.architecture, environment),
  ]);
  if (count > 1) assertStreams(version);
  return { qemuVersion: version.join("."), accelerator: bestAccelerator(trials, qemu.architecture), firmware, image };
}

export function isOlder(version: readonly [number, number], least: readonly [number, number]): boolean {
  return version[0] < least[0] || (version[0] === least[0] && version[1] < least[1]);
}

function assertStreams(version: readonly [number, number]): void {
  if (!isOlder(version, streamVersion)) return;
  const text = `QEMU ${version.join(".")} cannot connect machines: the stream networks for that came with ${streamVersion.join(".")}.`;
  throw new ClusterError("machine-not-set-up", text, {
    hint: "Install a newer QEMU; a cluster of one node runs with this one.",
    facts: { version: version.join(".") },
  });
}

function assertMemory(megabytes: number, totalBytes: number): void {
  const total = Math.floor(totalBytes / 1024 ** 2);
  if (megabytes <= total) return;
  throw new ClusterError(
    "capacity-lacking",
    `The nodes want ${megabytes} MB of memory, and this machine has ${total}.`,
    {
      hint: "Use fewer nodes, or give them less with --memory.",
      facts: { neededMegabytes: megabytes, totalMegabytes: total },
    },
  );
}

import { hardwareOf, hardwareText } from "./hardware.ts";
import { isOlder } from "../../model/check.ts";
import { nodesText } from "../../system/amounts.ts";
import { platform } from "node:os";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { nodeCount } from "../../model/cluster-record.ts";
import type { Clock, Environment } from "../../system/runtime.ts";
import { readOwnText } from "../../system/files/read-text.ts";
import { type UsableMemory, usableMemory } from "../../system/usable-memory.ts";
import type { CreationRequest, CreationSummary } from "../contract.ts";
import { outsideText, wayOutText } from "../shared/describe-copy.ts";
import { endFacts, endLine } from "../shared/lifetimes.ts";
import { assertCgroups1, cgroups1Advice } from "../shared/machine-errors.ts";
import { type CheckedImage, checkImage } from "./images/assert-bootable.ts";
import { type MachineImage, findImage } from "./images/image-store.ts";
import { cgroupVersionOf, cgroups1Distributions } from "./images/images.ts";
import type { Accelerator, VmOptions } from "./options.ts";
import {
  type AcceleratorChoice,
  chooseAccelerator,
  cpuModelProblem,
  trialLimitsMs,
  tryHost,
  whyTranslated,
} from "./qemu/accelerator.ts";
import { readBrokenAccelerator } from "./qemu/broken-accelerator.ts";
import { assertFeatures } from "./qemu/features.ts";
import { type Firmware, findFirmware } from "./qemu/firmware.ts";
import { type Qemu, qemuVersion, release } from "./qemu/qemu.ts";

/** The first version with `-action`. */
export const leastVersion = [6, 0] as const;
/** The first version with `stream` networks. */
export const streamVersion = [7, 2] as const;

export interface ResolvedCreation {
  readonly qemuVersion: string;
  readonly accelerator: Accelerator;
  readonly choice: AcceleratorChoice;
  readonly isSandboxed: boolean;
  /** Absent if machines have it built in. */
  readonly firmware: Firmware | undefined;
  readonly image: MachineImage;
  /** What a look at the user's own file has found; absent if the image is from the store, or will come there. */
  readonly ownImage?: CheckedImage | undefined;
}

/** Creates nothing. Throws `machine-not-set-up` or `capacity-lacking` if this machine isn't suitable. */
export async function resolveCreation(
  qemu: Qemu,
  request: Pick<
    CreationRequest<VmOptions>,
    "distribution" | "options" | "counts" | "needsCgroups1"
  >,
  environment: Environment,
  signal: AbortSignal,
): Promise<ResolvedCreation> {
  const { distribution, options } = request;
  assertCgroups1(request.needsCgroups1, {
    name: distribution,
    // The control groups of a user's own image are known only once a node runs.
    cgroupVersion: options.image === undefined ? cgroupVersionOf(distribution) : undefined,
    advice: cgroups1Advice(cgroups1Distributions),
  });
  const count = nodeCount(request.counts);
  assertMemory(megabytesOf(count, request.options), usableMemory());
  assertFileSizes(options, await readOwnText("/proc/self/limits").catch(() => ""));
  const [version, { trials, isSandboxed }, broken, firmware, image] = await Promise.all([
    usableVersion(qemu, count, signal),
    tryHost(qemu, platform(), trialLimitsMs, signal),
    readBrokenAccelerator(environment),
    findFirmware(qemu, signal),
    findImage(request, qemu.architecture, environment),
  ]);
  const choice = { forced: request.options.accelerator, broken };
  const accelerator = chooseAccelerator(trials, choice, qemu.architecture);
  await assertCpuModel(qemu, { accelerator, model: options.cpuModel }, signal);
  // Whatever is in the store was a disk when it came there.
  const ownImage =
    image.path !== undefined && image.isStored !== true
      ? await checkImage(qemu, { path: image.path, diskMegabytes: options.diskMegabytes }, signal)
      : undefined;
  return {
    qemuVersion: release(version),
    accelerator,
    choice,
    isSandboxed,
    firmware,
    image,
    ownImage,
  };
}

async function assertCpuModel(
  qemu: Qemu,
  { accelerator, model }: { readonly accelerator: Accelerator; readonly model: string | undefined },
  signal: AbortSignal,
): Promise<void> {
  if (model === undefined) return;
  const problem = await cpuModelProblem(qemu, { accelerator, model }, signal);
  if (problem === undefined) return;
  throw new ClusterError(
    "machine-not-set-up",
    `The CPU model ${model} does not work under ${accelerator}: ${problem}.`,
    {
      hint: `Choose another one for ${optionName("cpuModel")}. QEMU lists those it knows: ${qemu.systemName} -cpu help`,
      facts: { model, accelerator },
    },
  );
}

/** Returns QEMU's version. Throws `machine-not-set-up` if this QEMU can't run so many machines. */
export async function usableVersion(
  qemu: Qemu,
  count: number,
  signal: AbortSignal,
): Promise<string> {
  const version = await qemuVersion(qemu, signal);
  assertVersion(version, count);
  await assertFeatures(qemu, signal);
  return version;
}

export function assertVersion(version: string, count: number): void {
  if (isOlder(version, leastVersion)) {
    throw new ClusterError("machine-not-set-up", `QEMU ${release(version)} is too old.`, {
      hint: `Install version ${leastVersion.join(".")} or later; clusters of several nodes need ${streamVersion.join(".")}.`,
      facts: { version: release(version) },
    });
  }
  if (count === 1 || !isOlder(version, streamVersion)) return;
  const text = `QEMU ${release(version)} cannot connect machines: this needs the stream networks of version ${streamVersion.join(".")}.`;
  throw new ClusterError("machine-not-set-up", text, {
    hint: "Install a newer QEMU, or create a cluster of one node, which this version can run.",
    facts: { version: release(version) },
  });
}

/** What QEMU itself takes, even if its machine is idle and has no memory of note. Seen with QEMU 7.2: 28 MB. */
const qemuMegabytes = 28;

/** The memory that machines can use, with that of their QEMUs. */
export const megabytesOf = (
  count: number,
  { memoryMegabytes }: Pick<VmOptions, "memoryMegabytes">,
): number => count * (memoryMegabytes + qemuMegabytes);

export function assertMemory(
  megabytes: number,
  { bytes, owner }: UsableMemory,
  hint = `Use fewer nodes, or give them less memory with ${optionName("memory")}.`,
): void {
  const total = Math.floor(bytes / 1024 ** 2);
  if (megabytes <= total) return;
  throw new ClusterError(
    "capacity-lacking",
    `The nodes need ${megabytes} MB of memory, but ${owner} has ${total} MB.`,
    {
      hint,
      facts: { neededMegabytes: megabytes, totalMegabytes: total },
    },
  );
}

/** The system ends a QEMU that exceeds the limit without a word. `limits` are those of Linux for a process. */
export function assertFileSizes(
  { memoryMegabytes, diskMegabytes }: Pick<VmOptions, "memoryMegabytes" | "diskMegabytes">,
  limits: string,
): void {
  const [, bytes] = /^Max file size +(\d+) /m.exec(limits) ?? [];
  const needed = Math.max(memoryMegabytes, diskMegabytes);
  if (bytes === undefined || needed * 1024 ** 2 <= Number(bytes)) return;
  const limit = Math.floor(Number(bytes) / 1024 ** 2);
  throw new ClusterError(
    "machine-not-set-up",
    `A node may write a file of ${needed} MB, and this process may write ${limit} MB at most.`,
    {
      hint: `Raise the limit on the size of files (ulimit -f unlimited), or pass a smaller ${optionName("diskSize")}.`,
      facts: { neededMegabytes: needed, limitMegabytes: limit },
    },
  );
}

export function describePlan(
  { clusterId, counts, options, lifetimeMs }: CreationRequest<VmOptions>,
  { accelerator, choice, image, ...resolved }: ResolvedCreation,
  clock: Clock,
) {
  const { diskMegabytes, offline } = options;
  const hardware = hardwareOf(options);
  const isPresent = image.path !== undefined;
  const slowly = accelerator === "tcg" ? `; ${whyTranslated(choice)}` : "";
  return {
    counts,
    lines: [
      ["Cluster", clusterId],
      ["Engine", `QEMU ${resolved.qemuVersion}, ${accelerator}${slowly}`],
      ["Image", `${image.name} (${isPresent ? "present" : "will be downloaded"})`],
      ["Machines", `${nodeCount(counts)}: ${nodesText(counts)}`],
      ["Per machine", `${hardwareText(hardware)}, a disk of up to ${diskMegabytes} MB`],
      ["Network", `a private network between the machines${wayOutText(offline, outsideText)}`],
      ["Reached at", "ports of 127.0.0.1"],
      endLine(lifetimeMs, clock),
    ],
    facts: {
      cluster: clusterId,
      engine: { name: "qemu", version: resolved.qemuVersion, accelerator },
      image: { name: image.name, isPresent },
      counts: { masters: counts.master, agents: counts.agent, publicAgents: counts.public_agent },
      ...hardware,
      diskMegabytes,
      ...(offline && { offline: true }),
      ...endFacts(lifetimeMs, clock),
    },
  } satisfies CreationSummary;
}

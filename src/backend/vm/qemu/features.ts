import { ClusterError } from "../../../errors.ts";
import { type Qemu, installation } from "./qemu.ts";

/**
 * Names what every machine needs and some builds of QEMU lack. Asks the program that runs machines: Red Hat's refuses formats of disks that its qemu-img
 * knows.
 */
export async function lackingFeatures(qemu: Qemu, signal: AbortSignal): Promise<readonly string[]> {
  const formatsHelp = "-display none -machine none -drive format=help".split(" ");
  const [networks, formats] = await Promise.all([
    qemu.system(["-netdev", "help"], signal),
    qemu.system(formatsHelp, signal),
  ]);
  return [
    ...(/^user$/m.test(networks.stdout) ? [] : ["user networks (slirp)"]),
    ...(/\bvvfat\b/.test(formats.stdout) ? [] : ["the block driver vvfat"]),
  ];
}

export const lackingText = (lacking: readonly string[]): string =>
  `This QEMU was built without ${lacking.join(" and ")}.`;

/** Throws `machine-not-set-up` if this build of QEMU can't run machines. */
export async function assertFeatures(qemu: Qemu, signal: AbortSignal): Promise<void> {
  const lacking = await lackingFeatures(qemu, signal);
  if (lacking.length === 0) return;
  throw new ClusterError("machine-not-set-up", lackingText(lacking), {
    hint: installation(qemu),
    facts: { lacking },
  });
}

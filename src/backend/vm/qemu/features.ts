import { ClusterError } from "../../../errors.ts";
import { type Qemu, installation } from "./qemu.ts";

/**
 * Names what every machine needs and some builds of QEMU lack. Asks the program that runs machines:
 * Red Hat's refuses formats of disks that its qemu-img knows.
 */
export async function lackingFeatures(qemu: Qemu, signal: AbortSignal): Promise<readonly string[]> {
  // QEMU for ARM has no usual machine, without which it prints nothing.
  const help = async (...words: readonly string[]): Promise<string> =>
    (await qemu.system(["-display", "none", "-machine", "none", ...words], signal)).stdout;
  const [networks, formats] = await Promise.all([
    help("-netdev", "help"),
    help("-drive", "format=help"),
  ]);
  return [
    ...(/^user$/m.test(networks) ? [] : ["user networks (slirp)"]),
    ...(/\bvvfat\b/.test(formats) ? [] : ["the block driver vvfat"]),
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

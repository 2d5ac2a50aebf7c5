import { tryAsFirmware } from "./accelerator.ts";
import type { Qemu } from "./qemu.ts";

/**
 * A filter of system calls. Code that breaks out of a machine cannot load kernel modules or a new kernel, mount, trace, reboot and the like. Denying
 * more (`spawn`, `elevateprivileges`) isn't possible, because it keeps QEMU from going to the background.
 */
const words = ["-sandbox", "on,obsolete=deny,resourcecontrol=deny"] as const;

export const sandboxArguments = ({ isSandboxed }: { readonly isSandboxed: boolean }): readonly string[] =>
  isSandboxed ? words : [];

/** Checks whether QEMU's sandbox works here: builds for macOS have none, and a container's own filter may refuse it. */
export async function hasSandbox(qemu: Qemu, signal: AbortSignal): Promise<boolean> {
  const sandboxed: Qemu = {
    ...qemu,
    run: async (run, inner) => qemu.run({ ...run, words: [...words, ...run.words] }, inner),
  };
  return (await tryAsFirmware(sandboxed, "tcg", signal)) === undefined;
}

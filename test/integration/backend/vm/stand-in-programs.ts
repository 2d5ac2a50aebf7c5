import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { vmChecks } from "../../../../src/backend/vm/checks.ts";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { bootableDisk } from "../../../support/bootable-disk.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

export const x64 = architectureOf("x64");

interface StandIn {
  readonly version?: string;
  /** Accelerators that work. */
  readonly works?: readonly string[];
  /** Accelerators whose machines never end. */
  readonly hangs?: readonly string[];
  /** Accelerators that stop their machines. */
  readonly stops?: readonly string[];
  /** A CPU model that machines can't have. */
  readonly refuses?: string;
  readonly networks?: readonly string[];
  readonly hasVvfat?: boolean;
  readonly hasSandbox?: boolean;
}

/** Programs that answer like QEMU's, and fail on arguments that they don't know. */
export async function standIns(
  folder: string,
  { version = "8.2.1", works = ["tcg"], ...features }: StandIn,
) {
  const {
    hangs = [],
    stops = [],
    refuses = "none",
    networks = ["user", "stream"],
    hasVvfat = true,
    hasSandbox = true,
  } = features;
  const system = `case "$*" in
  --version) echo 'QEMU emulator version ${version} (Debian)' ;;
  *'-netdev help') printf '%s\\n' ${networks.join(" ")} ;;
  *'format=help') echo 'Supported formats: qcow2 ${hasVvfat ? "vvfat" : ""}' ;;
  *"-cpu ${refuses}"*) echo "qemu-system-x86_64: unable to find CPU model '${refuses}'" >&2; exit 1 ;;
  ${hasSandbox ? "" : "-sandbox*) exit 1 ;;"}
  *isa-debug-exit*)
    for name in ${hangs.join(" ")}; do case "$*" in *"-accel $name "*) exec sleep 60 ;; esac; done
    for name in ${stops.join(" ")}; do case "$*" in *"-accel $name "*)
      echo 'KVM internal error. Suberror: 1' >&2
      sleep 0.2
      echo '{"event": "STOP"}'
      exec sleep 60 ;; esac; done
    for name in ${works.join(" ")}; do case "$*" in *"-accel $name "*) exit 33 ;; esac; done
    echo 'qemu-system-x86_64: warning: never mind' >&2
    echo 'qemu-system-x86_64: error: failed to set MSR 0x10a' >&2
    exit 134 ;;
  *) exit 1 ;;
esac`;
  const image = `case $1 in --version) echo 'qemu-img version ${version}' ;; 
  info) echo '{"format": "raw", "virtual-size": 1048576}' ;; esac`;
  await writeFile(join(folder, "disk.raw"), bootableDisk());
  for (const [name, script] of [
    ["qemu-system-x86_64", system],
    // Its data folder is the one that contains it.
    ["qemu-system-aarch64", `case "$*" in '-L help') echo "${folder}" ;; *) exit 1 ;; esac`],
    ["qemu-img", image],
  ] as const) {
    await writeFile(join(folder, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(folder, name), 0o755);
  }
}

export const runtime = (folder: string) => ({
  environment: { PATH: folder, XDG_STATE_HOME: folder, XDG_CACHE_HOME: folder },
  clock: systemClock,
  progress: silentProgress,
});

/** Renders the outcome of the check with this name. */
export async function checked(folder: string, name: string, architecture = x64) {
  const check = vmChecks(runtime(folder), architecture).find((each) => each.name === name)!;
  return check.run(neverAborted);
}

import { ClusterError } from "../errors.ts";
import type { NodeShell } from "../model/creation.ts";
import { deadlineUnit } from "./cloud-init.ts";

/** cloud-init also waits for the network and for packages: minutes are usual on slow machines. */
export const usualFirstBootLimitMs = 10 * 60_000;
const exitStatus = { well: 0, complained: 3, deadlineMissing: 4 } as const;

/**
 * Waits for the end of cloud-init, and looks at what it did. Many of its errors (such as a locale that isn't there) mean little: what counts is
 * whether the deadline stands. `cloud-init status --wait` would do as well where it exists, but starts Python, which takes a translated machine ten
 * seconds and more.
 * $1: the deadline's unit, or nothing. $2: the folder that cloud-init keeps its state in.
 */
export const firstBootScript = `
error=
until [ -e "$2/result.json" ] || [ -e "$2/disabled" ]; do
  ! systemctl is-failed --quiet cloud-final.service 2>/dev/null || { error=yes; break; }
  sleep 0.5
done
! tr -d '\\n' 2>/dev/null <"$2/result.json" | grep -q '"errors": *\\[ *"' || error=yes
show() {
  cloud-init status --long 2>/dev/null | tail -n 12
  tail -n 20 /var/log/cloud-init-output.log 2>/dev/null
}
if [ -n "$1" ] && ! systemctl is-active --quiet "$1"; then
  show
  exit ${exitStatus.deadlineMissing}
fi
[ -z "$error" ] || { show; exit ${exitStatus.complained}; }
`;

/**
 * Resolves once the machine's first boot has ended, with cloud-init's complaints, if it had any that do no harm.
 * Throws `machine-failed` with the log's last lines where the machine isn't as it must be.
 */
export async function awaitFirstBoot(
  shell: NodeShell,
  machine: { readonly name: string; readonly hasDeadline: boolean; readonly limitMs: number },
  signal: AbortSignal,
): Promise<string | undefined> {
  const argv = [
    "sh",
    "-c",
    firstBootScript,
    "e2e-first-boot",
    machine.hasDeadline ? deadlineUnit : "",
    "/run/cloud-init",
  ];
  const result = await shell.run({ argv, sudo: true, limitMs: machine.limitMs, task: "its first boot" }, signal);
  const lines = result.stdout.trim();
  switch (result.status) {
    case exitStatus.well:
      return undefined;
    case exitStatus.complained:
      return lines;
    default:
      throw new ClusterError(
        "machine-failed",
        `${machine.name}: its first boot failed.\n${lines || result.stderr.trim()}`,
        {
          hint: "Choose another distribution or image; the console output among the evidence may say more.",
          facts: { node: machine.name, status: result.status },
        },
      );
  }
}

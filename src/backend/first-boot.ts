import type { NodeShell } from "./contract.ts";
import { ClusterError } from "../errors.ts";
import { outsideLines, plainLines } from "../system/printable.ts";
import { deadlineUnit } from "./cloud-init.ts";

/** cloud-init also waits for the network and for packages, which often takes minutes on slow machines. */
export const usualFirstBootLimitMs = 10 * 60_000;
const exitStatus = { well: 0, complained: 3, deadlineMissing: 4 } as const;

/**
 * Waits for cloud-init to end and checks its result. Many of its errors (such as a missing locale) mean little; the check is whether the deadline is
 * set. `cloud-init status --wait` would also work where it exists, but it starts Python, which takes ten seconds or more on a translated machine. $1:
 * the deadline's unit, or nothing. $2: the folder where cloud-init keeps its state.
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
 * Resolves when the machine's first boot has ended, with cloud-init's harmless complaints, if any. Throws `machine-failed` with the last lines of the
 * log if the machine isn't set up correctly.
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
  const lines = outsideLines(result.stdout.trim() === "" ? result.stderr : result.stdout, 40).map(
    (line) => `  ${line}`,
  );
  switch (result.status) {
    case exitStatus.well:
      return undefined;
    case exitStatus.complained:
      return plainLines(result.stdout, 40).join("\n");
    default:
      throw new ClusterError("machine-failed", [`${machine.name}: the first boot failed.`, ...lines].join("\n"), {
        hint: "Choose another distribution or image; the console output in the saved logs may show the cause.",
        facts: { node: machine.name, status: result.status },
      });
  }
}

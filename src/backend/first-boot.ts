import type { NodeShell } from "./contract.ts";
import { ClusterError } from "../errors.ts";
import { shellText } from "../ssh/shell-text.ts";
import { outsideLines, plainLines } from "../system/printable.ts";
import { deadlineUnit } from "./cloud-init.ts";
import firstBootFile from "./first-boot.sh" with { type: "text" };

/** cloud-init also waits for the network and for packages, which often takes minutes on slow machines. */
export const usualFirstBootLimitMs = 10 * 60_000;
const exitStatus = { well: 0, complained: 3, deadlineMissing: 4 } as const;

export const firstBootScript = shellText(firstBootFile, {
  DEADLINE_MISSING: exitStatus.deadlineMissing,
  COMPLAINED: exitStatus.complained,
});

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

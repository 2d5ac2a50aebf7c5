import { buffer } from "node:stream/consumers";
import { messageOf } from "../../../errors.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { tarStream, textFile } from "../../../system/files/tar.ts";
import type { Progress } from "../../../system/runtime.ts";
import type { Engine } from "../engine/engine.ts";
import type { NodeContainer } from "../records/read-containers.ts";
import countEnds from "./count-ends.sh" with { type: "text" };
import noteEndFile from "./note-end.sh" with { type: "text" };
import { nodeState } from "./system-flags.ts";

/**
 * A node that reboots itself is started again by the engine, like a machine by its firmware. An
 * engine sees only the status with which a node ends, so each unit gets one of its own. By itself,
 * systemd ends in the same way in all of them, or by a signal if it may call the kernel's reboot,
 * as everything that ends by force does.
 */
export const endStatus = {
  "systemd-reboot.service": 133,
  "systemd-poweroff.service": 0,
  "systemd-halt.service": 0,
} as const;

/**
 * The statuses that an engine shows for the signals with which the kernel ends a node:
 * https://man7.org/linux/man-pages/man2/reboot.2.html.
 */
export const forcedEndStatus = { reboot: 129, powerOff: 130 } as const;

/**
 * The drop-in of such a unit. Some distributions' units run `systemctl --force halt` (Debian 12),
 * which ends a privileged node by a signal before a SuccessAction counts, and systemd 239 has no
 * SuccessActionExitStatus. Before version 227, `systemctl exit` is refused.
 */
export function endSettings(unit: string, status: number): string {
  const verb = unit.slice("systemd-".length, -".service".length);
  const exit = `systemctl -f exit ${status} 2>/dev/null || systemctl -f ${verb}`;
  return `[Unit]\nSuccessAction=exit-force\nSuccessActionExitStatus=${status}\n[Service]\nType=oneshot\nExecStart=\nExecStart=/bin/sh -c '${exit}'\n`;
}

/** Runs at the very end of a node, also of one that is ended by force. */
export const noteEnd = {
  name: "usr/lib/systemd/system-shutdown/cluster-e2e",
  mode: 0o755,
  text: `#!/bin/sh\n${shellText(noteEndFile, { STATE: nodeState })}`,
} as const;

const script = shellText(countEnds, { UNITS: Object.keys(endStatus).join(" ") });

/**
 * Lets the engine start a running node again when it reboots itself, but not when it is stopped or
 * killed. If this fails, the node works, but stays off after a reboot of its own. `ask` runs a
 * command on the node, as root.
 */
export async function allowReboots(
  engine: Engine,
  { id }: Pick<NodeContainer, "id">,
  progress: Progress,
  ask = async (argv: readonly string[]) =>
    engine.change({ words: ["exec", "--user=0:0", id, ...argv] }),
): Promise<void> {
  const { restartWords } = engine.kind;
  if (restartWords === undefined) return;
  try {
    const known = await ask(["/bin/sh", "-c", script]);
    if (Number(known) === Object.keys(endStatus).length)
      await engine.change({ words: [...restartWords, id] });
  } catch (error) {
    progress.detail(1, `${id} will stay off if it reboots itself: ${messageOf(error)}`);
  }
}

/**
 * Tells start-system.sh that somebody wants the node to run. It would refuse a start by an engine
 * that has itself just started.
 */
export async function announceStart(
  engine: Engine,
  { id }: Pick<NodeContainer, "id">,
  nowMs: number,
): Promise<void> {
  if (engine.kind.restartWords === undefined) return;
  const file = textFile({
    name: `${nodeState.slice(1)}/wanted`,
    mode: 0o644,
    text: "",
    modifiedMs: nowMs,
  });
  await engine.change({ words: ["cp", "-", `${id}:/`], stdin: await buffer(tarStream([file])) });
}

import { buffer } from "node:stream/consumers";
import { messageOf } from "../../../errors.ts";
import { shellText } from "../../../ssh/shell-text.ts";
import { mapConcurrently } from "../../../system/concurrency.ts";
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

/** A running node, and how it runs a command as root; absent: by the engine. */
export interface RunningNode extends Pick<NodeContainer, "id"> {
  readonly ask?: (argv: readonly string[], signal: AbortSignal) => Promise<string>;
}

const atOnce = 6;

/**
 * Returns a function that lets the engine start a running node again when it reboots itself, but not when it is
 * stopped or killed. It never rejects: without this, a node works, but stays off after a reboot of its own. The engine
 * takes a moment for each node, so one command at a time has all nodes that were found able meanwhile.
 */
export function rebootPermits({
  engine,
  progress,
}: {
  readonly engine: Engine;
  readonly progress: Progress;
}): (node: RunningNode, signal: AbortSignal) => Promise<void> {
  const { restartWords } = engine.kind;
  if (restartWords === undefined) return async () => {};
  const failed = (ids: readonly string[], error: unknown): void => {
    const reason = messageOf(error);
    for (const id of ids) progress.detail(1, `${id} will stay off if it reboots itself: ${reason}`);
  };
  const able: string[] = [];
  const last = { update: Promise.resolve() };
  const update = async (): Promise<void> => {
    const ids = able.splice(0);
    if (ids.length === 0) return;
    try {
      await engine.change({ words: [...restartWords, ...ids] });
    } catch (error) {
      failed(ids, error);
    }
  };
  return async ({ id, ask = askBy(engine, id) }, signal) => {
    try {
      const answer = await ask(["/bin/sh", "-c", script], signal);
      if (Number(answer) !== Object.keys(endStatus).length) return;
    } catch (error) {
      return failed([id], error);
    }
    able.push(id);
    last.update = last.update.then(update);
    await last.update;
  };
}

/** Does that for nodes that all run. */
export async function allowReboots(
  runtime: { readonly engine: Engine; readonly progress: Progress },
  nodes: readonly RunningNode[],
  signal: AbortSignal,
): Promise<void> {
  const allow = rebootPermits(runtime);
  await mapConcurrently(nodes, atOnce, async (node) => allow(node, signal), signal);
}

const askBy = (engine: Engine, id: string) => async (argv: readonly string[]) =>
  engine.change({ words: ["exec", "--user=0:0", id, ...argv] });

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

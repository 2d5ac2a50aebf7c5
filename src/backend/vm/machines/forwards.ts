import type { Socket } from "node:net";
import { ClusterError } from "../../../errors.ts";
import * as read from "../../../model/reader.ts";
import { openSocket } from "../../../ssh/connection/open-connection.ts";
import { poll } from "../../../system/retry.ts";
import type { Clock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { runOnMonitor } from "../qemu/monitor.ts";

/**
 * Lets ports of this computer lead to a machine that runs. Resolves with false if one of them is
 * taken; then none leads there.
 */
export async function openForwards(
  folder: string,
  rules: readonly string[],
  signal: AbortSignal,
): Promise<boolean> {
  for (const [index, rule] of rules.entries()) {
    if (await addForward(folder, rule, signal)) continue;
    for (const opened of rules.slice(0, index)) await removeForward(folder, opened, signal);
    return false;
  }
  return true;
}

interface LoneConnection {
  /** The machine's. */
  readonly folder: string;
  readonly name: string;
  /** A port of this computer that nobody listens on. */
  readonly port: number;
  /** The machine's address in QEMU's network; nothing: the first one. */
  readonly address: string;
  readonly clock: Clock;
}

const connectTimeoutMs = 3_000;

/**
 * Connects to port 22 of a machine to which no port of this computer leads. Others may connect in
 * the moment in which one does, so the machine stands still until that port is closed again and
 * QEMU has no connection but this one. Otherwise throws `machine-failed`, and the machine doesn't
 * continue.
 */
export async function connectAlone(lone: LoneConnection, signal: AbortSignal): Promise<Socket> {
  const { folder, name, port, address, clock } = lone;
  const rule = `tcp:127.0.0.1:${port}-${address}:22`;
  const unaborted = new AbortController().signal;
  await runOnMonitor(folder, [{ execute: "stop" }], signal);
  if (!(await addForward(folder, rule, unaborted)))
    return await continued(lone, undefined, undefined);
  const opening = await openSocket({ host: "127.0.0.1", port, connectTimeoutMs }, signal).then(
    (socket) => ({ socket, error: undefined }),
    (error: unknown) => ({ socket: undefined, error }),
  );
  const { socket, error } = opening;
  const isAccepted = async (): Promise<true | undefined> =>
    (await connectionsTo(folder, port, unaborted)) > 0 ? true : undefined;
  if (socket !== undefined)
    await poll(isAccepted, ruleOf(waits.monitor, clock), signal).catch(() => {});
  await removeForward(folder, rule, unaborted);
  const others =
    (await connectionsTo(folder, port, unaborted)) - (socket?.destroyed === false ? 1 : 0);
  if (others === 0 && socket?.destroyed === false && !signal.aborted)
    return await continued(lone, socket, undefined);
  socket?.destroy();
  if (others <= 0) return await continued(lone, undefined, error);
  throw new ClusterError(
    "machine-failed",
    `Another program connected to ${name} before its keys were replaced.`,
    {
      hint: "Try again. If it happens again, find out which program connects to ports of 127.0.0.1.",
      facts: { node: name },
    },
  );
}

async function continued(
  { folder, name }: LoneConnection,
  socket: Socket | undefined,
  cause: unknown,
): Promise<Socket> {
  await runOnMonitor(folder, [{ execute: "cont" }], new AbortController().signal);
  if (socket !== undefined) return socket;
  throw new ClusterError(
    "connection-failed",
    `Cannot connect to ${name}: QEMU did not accept the connection.`,
    {
      facts: { node: name },
      transient: true,
      cause,
    },
  );
}

/** How many connections QEMU forwards that have come to this port. */
async function connectionsTo(folder: string, port: number, signal: AbortSignal): Promise<number> {
  const lines = (await tellMonitor(folder, "info usernet", signal)).split("\n");
  return lines.filter((line) => {
    const [, state, from] = /^\s*TCP\[(\w+)\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s/.exec(line) ?? [];
    return state !== "HOST_FORWARD" && Number(from) === port;
  }).length;
}

/** QEMU prints nothing if it opens the port. */
const addForward = async (folder: string, rule: string, signal: AbortSignal): Promise<boolean> =>
  (await tellMonitor(folder, `hostfwd_add outside ${rule}`, signal)) === "";

/** The part of a rule before the machine's address names it. */
const removeForward = async (folder: string, rule: string, signal: AbortSignal): Promise<unknown> =>
  tellMonitor(folder, `hostfwd_remove outside ${rule.slice(0, rule.indexOf("-"))}`, signal);

async function tellMonitor(folder: string, line: string, signal: AbortSignal): Promise<string> {
  const command = { execute: "human-monitor-command", arguments: { "command-line": line } };
  const [answer] = await runOnMonitor(folder, [command], signal);
  return (read.string(answer) ?? "").trim();
}

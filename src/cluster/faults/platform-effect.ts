/** What the platform makes of a fault, as a command of the user shows it. */
import { ClusterError, hasErrorId, messageOf, quoted } from "../../errors.ts";
import { optionName } from "../../references.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import type { FaultRequest } from "../../platform/faults/fault-kinds.ts";
import { listedNodes } from "../../platform/faults/fault-nodes.ts";
import { reasonOf } from "../../platform/install/phase.ts";
import { firstToAnswer } from "../../ssh/connection/connection-pool.ts";
import type { MaskedConnections } from "../connections.ts";
import { formatDuration } from "../../system/amounts.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import { poll } from "../../system/retry.ts";
import { type Runtime, passedMs } from "../../system/runtime.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import { runningMasters } from "../find-cluster.ts";
import { runningNodes } from "./plan-fault.ts";

interface PlatformEffect {
  /** A shell line that succeeds when the platform shows the fault. */
  readonly command: string;
  readonly nodes: readonly NodeRecord[];
}

export interface EffectContext {
  readonly cluster: ClusterRecord;
  readonly connections: Pick<MaskedConnections, "connect">;
  readonly runtime: Runtime;
}

const nodesAtOnce = 32;
/** A command that asks a node behind a partition may hang for as long as TCP tries. */
const tryLimitMs = 30_000;

/**
 * Returns what shall show the fault; undefined if the request doesn't say. Warns if it shows
 * without the fault. Throws as `planFault` does, and `connection-failed` if no master answers.
 */
export async function planEffect(
  { until: command, untilNodes = [] }: FaultRequest,
  context: EffectContext,
  signal: AbortSignal,
): Promise<PlatformEffect | undefined> {
  if (command === undefined) return undefined;
  const { cluster, connections, runtime } = context;
  const nodes =
    untilNodes.length > 0
      ? runningNodes(cluster, untilNodes)
      : [
          await firstToAnswer(
            runningMasters(cluster, "untilNodes"),
            async (node, inner) => connections.connect(node, inner),
            signal,
          ),
        ];
  const effect = { command, nodes };
  if ((await reasonsAgainst(effect, context, tryLimitMs, signal)).length === 0)
    runtime.progress.warn(
      `${quoted(command)} succeeds without the fault, so it does not tell whether the platform notices it.`,
    );
  return effect;
}

/**
 * Repeats the command until it succeeds on each of its nodes. Returns what continues the evidence
 * of the fault. Throws `deadline-passed` at the end of the fault.
 */
export async function awaitEffect(
  effect: PlatformEffect | undefined,
  endMs: number,
  context: EffectContext,
  signal: AbortSignal,
): Promise<string> {
  if (effect === undefined) return "";
  const { clock, progress } = context.runtime;
  const beganMs = passedMs(clock);
  const rule = ruleOf(waits.faultEffect, clock);
  const deadlineMs = Math.min(rule.deadlineMs, endMs);
  const lastMs = beganMs + deadlineMs - clock.now();
  const last: { reasons: readonly string[] } = { reasons: [] };
  const look = async (inner: AbortSignal): Promise<true | undefined> => {
    const limitMs = Math.min(tryLimitMs, Math.max(lastMs - passedMs(clock), 1_000));
    last.reasons = await reasonsAgainst(effect, context, limitMs, inner);
    return last.reasons.length === 0 ? true : undefined;
  };
  const waitingFor = (): string => `the platform to show the fault: ${last.reasons.join("; ")}`;
  const shown = await poll(look, { ...rule, deadlineMs, shows: { progress, waitingFor } }, signal);
  const ms = passedMs(clock) - beganMs;
  if (shown === undefined) throw neverShown(effect, ms, last.reasons);
  return `; the platform shows it after ${formatDuration(ms)}`;
}

function neverShown(
  { command, nodes }: PlatformEffect,
  tookMs: number,
  reasons: readonly string[],
): ClusterError {
  return new ClusterError(
    "deadline-passed",
    `The fault was begun, but the platform does not show it: ${quoted(command)} did not succeed on ${listedNodes(nodes)} within ${formatDuration(tookMs)}: ${reasons.join("; ")}.`,
    {
      hint: `It has been healed. Allow the platform more time with ${optionName("durationMs")}, or make sure that the command succeeds when the platform notices the fault.`,
      facts: { nodes: nodes.map(nodeReference) },
    },
  );
}

/** Runs the command once on each node. Returns why it did not succeed, for each node where it didn't. */
async function reasonsAgainst(
  { command, nodes }: PlatformEffect,
  { connections }: EffectContext,
  limitMs: number,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const run = async (node: NodeRecord): Promise<readonly string[]> => {
    try {
      const connection = await connections.connect(node, signal);
      const argv = ["sh", "-c", command];
      const result = await connection.run({ argv, sudo: true, limitMs, task: "it" }, signal);
      return result.status === 0 ? [] : [`${nodeReference(node)}: ${reasonOf(result)}`];
    } catch (error) {
      signal.throwIfAborted();
      if (!hasErrorId(error, "deadline-passed") && !hasErrorId(error, "connection-failed"))
        throw error;
      return [messageOf(error).replace(/\.$/, "")];
    }
  };
  return (await mapConcurrently(nodes, nodesAtOnce, run, signal)).flat();
}

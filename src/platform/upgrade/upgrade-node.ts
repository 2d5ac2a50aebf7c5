import { ClusterError, messageOf, mayPass } from "../../errors.ts";
import { type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import { outside } from "../../outside-text.ts";
import { outsideLine } from "../../system/printable.ts";
import { poll } from "../../system/retry.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import { installPaths } from "../install-paths.ts";
import type { Installation } from "../install/steps.ts";
import { type PhaseWork, runPhase } from "../install/phase.ts";
import { prepareNode } from "../install/prepare/prepare-node.ts";
import type { Layout, LayoutUpgrade } from "../layouts/layout.ts";
import { askNode } from "../readiness/ask-node.ts";
import type { MachineWatch } from "../readiness/machine-watch.ts";
import { type NodeVersion, readNodeVersion } from "./node-version.ts";
import { type UpgradeSource, startUpgrade } from "./start-upgrade.ts";

export interface NodeObserver {
  readonly watch: MachineWatch;
  /** Shows what the upgrade waits for on this node; empty: nothing any more. */
  readonly waiting: (node: NodeRecord, reason: string) => void;
  /** Called when it is known which version the node has. */
  readonly seen: (node: NodeRecord, version: string) => void;
}

interface UpgradeNode extends NodeObserver {
  readonly node: NodeRecord;
  readonly layout: Layout & { readonly upgrade: LayoutUpgrade };
  readonly source: UpgradeSource;
  /** Whether to run its script. Otherwise, the node has the version already, and only its check must pass. */
  readonly runsScript: boolean;
}

/** How long a node's check may fail after its upgrade. */
const checkLimitMs = 10 * 60_000;

/**
 * Upgrades one node, and resolves when its check has passed twice. If this is interrupted, the node
 * goes on by itself. Throws `upgrade-failed`, as `machine-failed` if the machine has ended, and as
 * the connection does.
 */
export async function upgradeNode(
  work: PhaseWork,
  { plan }: Installation,
  request: UpgradeNode,
): Promise<void> {
  const { node, source, runsScript, waiting } = request;
  using step = work.progress.start("Upgrade", nodeReference(node));
  if (runsScript) await runUpgrade(work, plan, request);
  await untilReady(work, request);
  waiting(node, "");
  step.done(`now has version ${outside(source.to)}`);
}

async function runUpgrade(
  work: PhaseWork,
  plan: Installation["plan"],
  request: UpgradeNode,
): Promise<void> {
  const { node, layout, source, seen } = request;
  // The node's services are running. What they occupy is no obstacle.
  if (layout.upgrade.preparesNodes)
    await runPhase(work, prepareNode({ ...layout, conditions: () => [] }, plan), node);
  await runPhase(work, startUpgrade(layout.upgrade, source), node);
  const after = await untilUpgradeEnds(work, request);
  seen(node, after.version);
  if (after.upgrade.state !== "succeeded")
    throw upgradeFailed(
      node,
      after.upgrade.reason || "its upgrade was interrupted",
      after.upgrade.log,
    );
  const other = `its upgrade script succeeded, but the node still has version ${outside(after.version)}`;
  if (after.version !== source.to) throw upgradeFailed(node, other, []);
}

/** Resolves when no upgrade runs on the node. A node that doesn't answer, because it restarts, is waited for. */
export async function untilUpgradeEnds(
  { connections, clock, signal }: PhaseWork,
  { node, watch, waiting }: Pick<UpgradeNode, "node" | "watch" | "waiting">,
): Promise<NodeVersion> {
  const state = { isSilent: false };
  const look = async (inner: AbortSignal): Promise<NodeVersion | undefined> => {
    await watch.current(state.isSilent, inner);
    try {
      const found = await readNodeVersion(node, connections, inner);
      state.isSilent = false;
      if (found.upgrade.state !== "running") return found;
      waiting(node, "its upgrade script is running");
    } catch (error) {
      inner.throwIfAborted();
      if (!mayPass(error)) throw error;
      state.isSilent = true;
      waiting(node, `it does not answer: ${messageOf(error)}`);
    }
    return undefined;
  };
  return poll(look, { clock, pauseMs: waits.nodeUpgrade.pauseMs }, signal);
}

async function untilReady(
  { connections, clock, signal }: PhaseWork,
  { node, watch, waiting }: UpgradeNode,
): Promise<void> {
  const state = { isSilent: false, reason: "" };
  const look = async (inner: AbortSignal): Promise<true | undefined> => {
    await watch.current(state.isSilent, inner);
    const question = { connections, looks: 2 };
    const { verdict, report } = await askNode(node, question, inner);
    state.isSilent = report === undefined;
    if (verdict.kind === "ready") return true;
    if (verdict.kind === "failed") throw upgradeFailed(node, verdict.reason, verdict.log);
    state.reason = verdict.reason;
    waiting(node, verdict.reason);
    return undefined;
  };
  const rule = ruleOf({ ...waits.nodeUpgrade, limitMs: checkLimitMs }, clock);
  if ((await poll(look, rule, signal)) === undefined) throw upgradeFailed(node, state.reason, []);
}

function upgradeFailed(
  node: Pick<NodeRecord, "role" | "index">,
  reason: string,
  lines: readonly string[],
): ClusterError {
  const reference = nodeReference(node);
  const log = lines.map((line) => outsideLine(line));
  const tail =
    log.length === 0 ? [] : ["The last lines of its log:", ...log.map((line) => `    ${line}`)];
  return new ClusterError(
    "upgrade-failed",
    [`The upgrade failed on ${reference}: ${reason}.`, ...tail].join("\n"),
    {
      hint: `The whole log is ${installPaths.upgradeLog} on that node.`,
      facts: { node: reference, reason, log },
    },
  );
}

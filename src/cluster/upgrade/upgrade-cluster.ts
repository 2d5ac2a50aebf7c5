/**
 * An upgrade from beginning to end: its steps, their order, and what runs side by side. The order
 * is stated nowhere else.
 */
import type { Backend } from "../../backend/contract.ts";
import { ClusterError, type ErrorId, revised, messageOf } from "../../errors.ts";
import { runCommand } from "../../references.ts";
import { type ClusterRecord, type NodeRecord, nodeReference } from "../../model/cluster-record.ts";
import type { Course, NewEvent } from "../../model/event.ts";
import { outside } from "../../outside-text.ts";
import type { ArtifactHead } from "../../platform/artifact/artifact-head.ts";
import { installPaths, upgradeWork } from "../../platform/install-paths.ts";
import makeFolders from "../../platform/install/make-folders.sh" with { type: "text" };
import { type Phase, runPhase, runRemoteScript } from "../../platform/install/phase.ts";
import {
  type FoundArtifact,
  type Installation,
  checkVersion,
  fetchArtifact,
  firstMasterOf,
  openInstallation,
  serveTo,
} from "../../platform/install/steps.ts";
import { askNode } from "../../platform/readiness/ask-node.ts";
import { type MachineWatch, createMachineWatch } from "../../platform/readiness/machine-watch.ts";
import { configureUpgrade } from "../../platform/upgrade/configure-upgrade.ts";
import { readNodeVersion } from "../../platform/upgrade/node-version.ts";
import { withUpgradeLock } from "../../platform/upgrade/upgrade-lock.ts";
import {
  type NodeObserver,
  untilUpgradeEnds,
  upgradeNode,
} from "../../platform/upgrade/upgrade-node.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { mapConcurrently, once } from "../../system/concurrency.ts";
import { plainLine } from "../../system/printable.ts";
import { type Progress, type Work, endedBy, passedMs } from "../../system/runtime.ts";
import { timeLimit, whileWaitingFor } from "../../system/time-limit.ts";
import { type MaskedConnections, assertKeyIsHere, openMaskedConnections } from "../connections.ts";
import { recording } from "../events/record-event.ts";
import { findCluster } from "../find-cluster.ts";
import {
  type UpgradableLayout,
  type UpgradeRequest,
  assertFits,
  checkedHead,
  planOf,
  upgradeTooSlow,
} from "./plan-upgrade.ts";
import {
  type NodeWork,
  type SurveyedNode,
  type UpgradeLedger,
  openLedger,
  remainingWork,
  roundsOf,
  wasUpgradedTo,
} from "./upgrade-order.ts";

/**
 * Upgrades a cluster's nodes, one after the other. After a failure or an abort, some nodes have the
 * new version and others the old one, and a node's own upgrade goes on; the same call continues.
 * Throws the errors of plan-upgrade.ts
 * and of the steps, `upgrade-failed`, `cluster-busy` and `deadline-passed`.
 */
export async function upgradeCluster(
  work: Work,
  backend: Backend<unknown>,
  request: UpgradeRequest,
) {
  const { clusterId, artifact, deadlineMs } = request;
  using limit = timeLimit(deadlineMs - passedMs(work.clock), upgradeTooSlow(clusterId));
  const inTime = endedBy(work, limit);
  const readHead = async () => checkedHead(inTime, request);
  const head = await whileWaitingFor(
    () => `the artifact ${artifact.shown}`,
    readHead,
    inTime.signal,
  );
  const cluster = await findCluster(backend, clusterId, inTime.signal);
  await assertKeyIsHere(cluster);
  assertComplete(cluster);
  await using connections = openMaskedConnections(cluster, work);
  const lock = { cluster, firstMaster: firstMasterOf(cluster) };
  return await withUpgradeLock({ ...inTime, connections }, lock, async (inner) =>
    upgradeNodes(inner, backend, {
      request,
      head,
      cluster,
      isInterrupted: () => work.signal.aborted,
    }),
  );
}

type UpgradeWork = Work & { readonly connections: MaskedConnections };

interface CheckedUpgrade {
  readonly request: UpgradeRequest;
  readonly head: ArtifactHead;
  readonly cluster: ClusterRecord;
  /** Whether the user wants the upgrade to end. */
  readonly isInterrupted: () => boolean;
}

/** The part of an upgrade that only one process at a time may do. */
async function upgradeNodes(
  work: UpgradeWork,
  backend: Backend<unknown>,
  { request, head, cluster, isInterrupted }: CheckedUpgrade,
) {
  const { clock, progress, connections } = work;
  const describe = async (inner: AbortSignal) => findCluster(backend, cluster.id, inner);
  const watch = createMachineWatch({ cluster, describe, deadlineMs: request.deadlineMs, clock });
  const observers = { watch, waits: openWaits(progress) };
  const surveyed = await survey(work, cluster, observers);
  const layout = assertFits(head, request, { cluster, surveyed });
  const plan = planOf(request, head, { cluster, layout });
  const installation = openInstallation(work, plan, backend.nodes, upgradeWork);
  const artifactOnNode = once(async () => transferArtifact(work, installation, cluster));
  const known = plainLine(head.platform?.version);
  const isKnownOnAll = surveyed.every(({ found }) => found.version === known);
  const version = isKnownOnAll ? known : (await artifactOnNode()).version.version;
  const pending = await remaining(work, surveyed, { version, layout });
  if (pending.length > 0) {
    const roll = {
      ...observers,
      cluster,
      layout,
      pending,
      artifact: await artifactOnNode(),
      ledger: openLedger(surveyed),
    };
    using _state = request.onAbandon(() => stateText(roll));
    const eventOf = (course: Course): NewEvent => ({ kind: "upgrade", version, course });
    try {
      await recording(cluster.directory, eventOf, work, async () =>
        rollOut(work, installation, roll, request),
      );
    } catch (error) {
      if (!isInterrupted()) {
        await connections.readAgain();
        throw withState(error, roll);
      }
      progress.warn(`${stateText(roll)} Run the same command again to continue.`);
      throw error;
    }
  }
  await runPhase(work, cleanUp, firstMasterOf(cluster));
  // Such as `agent_0`, in the order in which they were upgraded. Empty: all nodes had the version.
  return { cluster, version, upgraded: pending.map(({ node }) => nodeReference(node)) };
}

async function transferArtifact(
  work: UpgradeWork,
  installation: Installation,
  cluster: ClusterRecord,
): Promise<FoundArtifact> {
  const node = firstMasterOf(cluster);
  await fetchArtifact(work, installation, { node, untilPrepared: async () => {} });
  return checkVersion(work, installation, node);
}

/** Refuses a cluster with missing nodes, because those would keep their version. */
function assertComplete(cluster: ClusterRecord): void {
  const absent = cluster.nodes.filter((node) => node.state !== "running" || node.ssh.host === "");
  if (absent.length === 0 && cluster.state === "running") return;
  const names =
    absent.map((node) => `${nodeReference(node)} is not running`).join(", ") ||
    "machines are missing";
  throw new ClusterError(
    "machine-failed",
    `Cluster "${cluster.id}" cannot be upgraded: ${names}.`,
    {
      hint: `${runCommand("inspect")} to see its nodes.`,
      facts: { cluster: cluster.id, nodes: absent.map(nodeReference) },
    },
  );
}

interface Observers {
  readonly watch: MachineWatch;
  readonly waits: Waits;
}

const nodesAtOnce = 32;

/** Asks every node for its version. Waits for upgrades that an earlier run of the program has left running. */
async function survey(
  work: UpgradeWork,
  cluster: ClusterRecord,
  { watch, waits }: Observers,
): Promise<readonly SurveyedNode[]> {
  const { progress, connections, signal } = work;
  using step = progress.start("Read versions");
  const observer: NodeObserver = { watch, waiting: waits.set, seen: () => {} };
  const ask = async (node: NodeRecord): Promise<SurveyedNode> => {
    const first = await readNodeVersion(node, connections, signal);
    if (first.upgrade.state !== "running") return { node, found: first };
    const found = await untilUpgradeEnds(work, { ...observer, node });
    waits.set(node, "");
    return { node, found };
  };
  const all = async () => mapConcurrently(cluster.nodes, nodesAtOnce, ask, signal);
  const surveyed = await whileWaitingFor(waits.text, all, signal);
  step.done();
  return surveyed;
}

/** Nodes that an earlier run upgraded count as done if their check passes. */
async function remaining(
  { connections, signal }: UpgradeWork,
  surveyed: readonly SurveyedNode[],
  { version, layout }: { readonly version: string; readonly layout: UpgradableLayout },
): Promise<readonly NodeWork[]> {
  const question = { connections, looks: 1 };
  const doubtful = surveyed.filter((each) => wasUpgradedTo(each, version));
  const answers = await mapConcurrently(
    doubtful,
    nodesAtOnce,
    async ({ node }) => askNode(node, question, signal),
    signal,
  );
  const unready = answers
    .filter(({ verdict }) => verdict.kind !== "ready")
    .map(({ node }) => node.id);
  return remainingWork(surveyed, {
    version,
    unready: new Set(unready),
    isRepeatable: layout.upgrade.isRepeatable,
  });
}

/** An upgrade whose artifact is on the first master. */
interface Roll extends Observers {
  readonly cluster: ClusterRecord;
  readonly layout: UpgradableLayout;
  readonly pending: readonly NodeWork[];
  readonly artifact: FoundArtifact;
  readonly ledger: UpgradeLedger;
}

/** The server must not end before the last node, whose upgrade may go on after the program has ended. */
const serverGraceSeconds = 60 * 60;

/**
 * Generates and serves what the nodes need, and upgrades them in their order. The first failure
 * ends the upgrade, when the others at work have ended.
 */
async function rollOut(
  work: UpgradeWork,
  installation: Installation,
  { cluster, layout, pending, artifact, watch, waits, ledger }: Roll,
  { deadlineMs, parallel }: UpgradeRequest,
): Promise<void> {
  const scripted = pending.filter(({ runsScript }) => runsScript);
  const installed = scripted.map(({ from }) => from);
  const request = { cluster, artifact, layout, installed };
  const scripts = await configureUpgrade(work, installation, request);
  const [script = ""] = scripts.values();
  const nodes = scripted.map(({ node }) => node);
  const longestSeconds = Math.ceil((deadlineMs - passedMs(work.clock)) / 1000) + serverGraceSeconds;
  const url =
    nodes.length === 0
      ? ""
      : await serveTo(work, installation, { cluster, nodes, script, longestSeconds });
  const to = artifact.version.version;
  const observer: NodeObserver = { watch, waiting: waits.set, seen: ledger.seen };
  const upgrade = async ({ node, from, runsScript }: NodeWork): Promise<void> => {
    if (runsScript) ledger.begin(node);
    const source = { url, script: scripts.get(from) ?? script, from, to };
    await upgradeNode(work, installation, { ...observer, node, layout, source, runsScript });
    ledger.end(node);
  };
  try {
    for (const { nodes: each, atOnce } of roundsOf(pending, parallel))
      await whileWaitingFor(
        waits.text,
        async () => mapConcurrently(each, atOnce, upgrade, work.signal),
        work.signal,
      );
  } finally {
    waits.clear();
  }
}

function stateText({ ledger }: Roll): string {
  const begun = ledger.begun();
  const upgrades =
    begun.length === 0 ? "" : ` The upgrade of ${begun.join(", ")} may go on by itself.`;
  return `${ledger.versionsText()}${upgrades}`;
}

/** Adds which node has which version, and how to go on. */
function withState(error: unknown, roll: Roll): unknown {
  if (!(error instanceof ClusterError)) return error;
  const { hint } = ClusterError.marked(error);
  return revised(error, {
    message: `${messageOf(error)}\n${stateText(roll)}`,
    hint: [
      ...(hint === undefined || errorsWithCreateHints.has(error.id) ? [] : [hint]),
      continueHint(roll),
    ].join(" "),
    facts: { versions: roll.ledger.versions() },
  });
}

const continueHint = ({ artifact: { version } }: Roll): string =>
  `After a repair, run the same command again: it continues with the nodes that lack ${outside(version.version)}.`;

/** Errors whose hints don't fit an upgrade: they name options of `create`, or advise a new cluster. */
const errorsWithCreateHints: ReadonlySet<ErrorId> = new Set([
  "install-failed",
  "remote-command-failed",
  "machine-failed",
]);

interface Waits {
  readonly set: NodeObserver["waiting"];
  /** `agent_0: its upgrade script is running; agent_1: …` */
  readonly text: () => string;
  readonly clear: () => void;
}

function openWaits(progress: Pick<Progress, "waiting">): Waits {
  const reasons = new Map<string, string>();
  const text = (): string => [...reasons].map(([node, reason]) => `${node}: ${reason}`).join("; ");
  return {
    set: (node, reason) => {
      const before = text();
      if (reason === "") reasons.delete(nodeReference(node));
      else reasons.set(nodeReference(node), reason);
      if (text() !== before) progress.waiting(text());
    },
    text,
    clear: () => {
      reasons.clear();
      progress.waiting("");
    },
  };
}

/** The artifact may be large. The installation's own folder stays. */
const cleanUp: Phase = {
  title: "Clean up",
  run: async ({ connection, reference }, signal) => {
    await runRemoteScript(
      connection,
      {
        name: "e2e-upgrade-end",
        text: shellText(makeFolders, { OLD: upgradeWork.folder }),
        arguments: [installPaths.folder],
        task: "removing the upgrade's folder",
        failure: `${reference}: cannot remove the upgrade's folder`,
        errorId: "remote-command-failed",
      },
      signal,
    );
  },
};

/**
 * Faults from beginning to end: they begin on the nodes, show, and are healed by the nodes
 * themselves when their time is over, or earlier by a request.
 */
import { randomBytes } from "node:crypto";
import type { Backend } from "../../backend/contract.ts";
import { ClusterError, assertExpected, hasErrorId, messageOf } from "../../errors.ts";
import { runCommand } from "../../references.ts";
import { type NodeRecord, isReachable, nodeReference } from "../../model/cluster-record.ts";
import type { ClusterEvent } from "../../model/event.ts";
import { outside } from "../../outside-text.ts";
import { type FaultRequest, faultRows } from "../../platform/faults/fault-kinds.ts";
import {
  type FaultRecord,
  type NodeFault,
  type ObserveRequest,
  healFaults,
  noLinks,
  startFault,
} from "../../platform/faults/node-faults.ts";
import type { Observed } from "../../platform/faults/fault-kind.ts";
import { listedNodes } from "../../platform/faults/fault-nodes.ts";
import { readEvents } from "../../store/events.ts";
import { keepFaultNote, removeFaultNote } from "../../store/fault-notes.ts";
import { mapConcurrently } from "../../system/concurrency.ts";
import { poll } from "../../system/retry.ts";
import { type Work, passedMs } from "../../system/runtime.ts";
import { ruleOf, waits } from "../../system/waits.ts";
import { recordEvent } from "../events/record-event.ts";
import { findNodes } from "../find-cluster.ts";
import { assertCanShow, awaitEvidence, unlessAway } from "./fault-evidence.ts";
import { type FaultSession, openSession } from "./fault-session.ts";
import { type PlannedPart, planFault } from "./plan-fault.ts";
import { awaitEffect, planEffect } from "./platform-effect.ts";

export interface Fault {
  readonly id: string;
  readonly kind: FaultRequest["kind"];
  /** Such as `partition between agent_0 and master_0`. */
  readonly description: string;
  readonly secondsLeft: number;
  readonly nodes: readonly string[];
  /** Whether it counts as healed only when every node's check passes. */
  readonly awaitsCheck?: boolean;
}

interface FaultOnNode {
  readonly node: NodeRecord;
  readonly fault: NodeFault;
}

interface BegunFault {
  readonly fault: Fault;
  readonly parts: readonly FaultOnNode[];
}

const nodesAtOnce = 32;

/** Aborted when the cluster is about to be removed: then nothing needs to be healed. */
export type Abandon = AbortSignal | undefined;

interface BeginFault {
  readonly clusterId: string;
  readonly abandon?: Abandon;
  /** Must have no problems; see `faultProblems`. */
  readonly request: FaultRequest;
}

/**
 * Begins a fault, and resolves when it shows. If it can't begin on one node, is interrupted or
 * doesn't show, all nodes are healed. Throws `bad-usage`, `node-not-found`, `machine-not-set-up`, `machine-failed`,
 * `remote-command-failed`, `deadline-passed` if the platform doesn't show it, and as connections
 * do.
 */
export async function beginFault(
  work: Work,
  backend: Backend<unknown>,
  { clusterId, request, abandon }: BeginFault,
): Promise<BegunFault> {
  await using session = await openSession(work, backend, clusterId);
  const { clock, progress, signal } = work;
  const planned = planFault(session.cluster, request);
  const id = randomBytes(4).toString("hex");
  const durationSeconds = Math.ceil(request.durationMs / 1000);
  const onEach = async <Result>(task: (part: PlannedPart) => Promise<Result>) =>
    mapConcurrently(planned, nodesAtOnce, task, signal);
  const observe = async ({ node, record }: PlannedPart): Promise<Observed> =>
    session.observe(node, observationOf(record, request), signal);
  const description = planned[0]?.record.description ?? "";
  const peers = planned.flatMap((part) => part.peers ?? []);
  const nodes = [...new Set([...planned.map(({ node }) => node), ...peers])].map(nodeReference);
  const recordCourse = (course: "begun" | "shown" | "failed", text = description): void =>
    recordEvent(
      session.cluster.directory,
      { kind: "fault", id, fault: request.kind, text, course, seconds: durationSeconds, nodes },
      work,
    );
  using step = progress.start("Begin fault", description);
  const effect = await planEffect(request, session, signal);
  const before = await onEach(observe);
  assertCanShow(request, before, nodes);
  recordCourse("begun");
  let endMs = 0;
  try {
    await onEach(async ({ node, values, record }) => {
      const connection = await session.connect(node, signal);
      const fault = { id, durationSeconds, values, record };
      await unlessAway(request, startFault(connection, fault, signal));
    });
    endMs = passedMs(clock) + request.durationMs;
    const endsAt = new Date(clock.now() + request.durationMs);
    const looking = { request, before, observe: async () => onEach(observe), clock };
    const evidence = await awaitEvidence(looking, signal);
    const shown = `${evidence}${await awaitEffect(effect, endsAt.getTime(), session, signal)}`;
    recordCourse("shown", `${description}: ${shown}`);
    await keepFaultNote(session.cluster.directory, { id, description, endsAt });
    step.done();
    progress.note(`The fault shows (${description}): ${shown}.`);
  } catch (error) {
    if (!isAborted(abandon)) await healAfterFailure(session, planned, id, healingSignal(abandon));
    recordCourse("failed");
    throw error;
  }
  const secondsLeft = Math.max(0, Math.ceil((endMs - passedMs(clock)) / 1000));
  const parts = planned.map(({ node, record }) => ({
    node,
    fault: { ...record, id, secondsLeft },
  }));
  return { fault: viewOf(parts), parts };
}

const healLimitMs = 60_000;

const isAborted = (signal: Abandon): boolean => signal?.aborted ?? false;

/** The time limit for all nodes, where the caller's signal may be aborted. */
const healingSignal = (abandon: Abandon): AbortSignal =>
  AbortSignal.any([AbortSignal.timeout(healLimitMs), ...(abandon === undefined ? [] : [abandon])]);

/** Heals the parts that have begun, and warns of nodes where that fails. */
async function healAfterFailure(
  session: FaultSession,
  planned: readonly PlannedPart[],
  id: string,
  signal: AbortSignal,
): Promise<void> {
  const heal = async ({ node }: PlannedPart): Promise<void> => {
    try {
      await healFaults(await session.connect(node, signal), [id], signal);
    } catch (error) {
      warnOfFault(session.runtime, nodeReference(node), error);
    }
  };
  // Past the limit, each node that is left gets its warning too.
  await mapConcurrently(planned, nodesAtOnce, heal, new AbortController().signal);
}

const warnOfFault = ({ progress }: Pick<Work, "progress">, nodes: string, error: unknown): void =>
  progress.warn(`${nodes} may have the fault until its time is over: ${messageOf(error)}`);

/** Returns the faults of all nodes that answer, and warns of the others. Throws their error if none does. */
export async function listFaults(
  work: Work,
  backend: Backend<unknown>,
  clusterId: string,
): Promise<readonly Fault[]> {
  await using session = await openSession(work, backend, clusterId);
  const asked = await askNodes(session, work.signal);
  assertAnswered(asked, undefined);
  return faultsOf(asked.flatMap(({ parts }) => parts));
}

/** Which faults to heal: all, or those that concern these nodes, or those with these ids. */
interface Healing {
  readonly clusterId: string;
  readonly nodes?: readonly string[];
  readonly ids?: readonly string[];
  /** Then no check is awaited. */
  readonly isInterrupted?: boolean;
}

/**
 * Heals faults on every node that has them. Resolves with the faults once the nodes show that they
 * are healed, and every node's check passes if a fault awaits that. Warns of nodes that don't
 * answer. Throws their error if none does of which faults are to be healed.
 */
export async function endFaults(
  work: Work,
  backend: Backend<unknown>,
  { clusterId, nodes = [], ids, isInterrupted = false }: Healing,
): Promise<readonly Fault[]> {
  await using session = await openSession(work, backend, clusterId);
  const named = nodes.length === 0 ? undefined : findNodes(session.cluster, nodes);
  const asked = await askNodes(session, work.signal);
  if (ids === undefined) assertAnswered(asked, named);
  const all = asked.flatMap(({ parts }) => parts);
  const isNamed = ({ node, fault }: FaultOnNode): boolean =>
    (named?.includes(node) ?? true) && (ids?.includes(fault.id) ?? true);
  const chosen = new Set(all.filter(isNamed).map(({ fault }) => fault.id));
  const ending = all.filter(({ fault }) => chosen.has(fault.id));
  const staying = all.filter(({ fault }) => !chosen.has(fault.id));
  const heal = async ({ node }: Asked): Promise<void> =>
    healFaults(await session.connect(node, work.signal), [...chosen], work.signal);
  // Also on nodes where such a fault is still on its way.
  const answering = asked.filter(({ failure }) => failure === undefined);
  if (chosen.size > 0) await mapConcurrently(answering, nodesAtOnce, heal, work.signal);
  await showHealed(session, { ended: ending, staying, by: "command", isInterrupted }, work.signal);
  return faultsOf(ending);
}

interface Waiting {
  readonly clusterId: string;
  readonly abandon?: Abandon;
  readonly begun: BegunFault;
}

/** Resolves when no node has this fault any more. If interrupted, heals it first, or warns that it can't. */
export async function untilFaultEnds(
  work: Work,
  backend: Backend<unknown>,
  waiting: Waiting,
): Promise<void> {
  try {
    await awaitEnd(work, backend, waiting);
  } catch (error) {
    const { id, nodes } = waiting.begun.fault;
    const healing = { clusterId: waiting.clusterId, ids: [id], isInterrupted: true };
    if (work.signal.aborted && !isAborted(waiting.abandon)) {
      const limited = { ...work, signal: healingSignal(waiting.abandon) };
      await endFaults(limited, backend, healing).catch((problem: unknown) => {
        if (!isAborted(waiting.abandon)) warnOfFault(work, nodes.join(", "), problem);
      });
    }
    throw error;
  }
}

async function awaitEnd(
  work: Work,
  backend: Backend<unknown>,
  { clusterId, begun: { fault, parts } }: Waiting,
): Promise<void> {
  await using session = await openSession(work, backend, clusterId);
  const { clock, progress, signal } = work;
  progress.waiting(`the nodes heal the fault by themselves: ${fault.description}`);
  const limitMs = fault.secondsLeft * 1000;
  const endMs = passedMs(clock) + limitMs;
  const { pauseMs } = waits.faultHealed;
  const isGone = async ({ node }: FaultOnNode): Promise<boolean> => {
    try {
      const { faults } = await session.observe(node, noLinks, signal);
      return !faults.some(({ id }) => id === fault.id);
    } catch (error) {
      assertExpected(error, signal);
      return false;
    }
  };
  const lookEarly = async (): Promise<true | undefined> =>
    (await mapConcurrently(parts, nodesAtOnce, isGone, signal)).every(Boolean) || undefined;
  await poll(lookEarly, { clock, pauseMs, deadlineMs: clock.now() + limitMs }, signal);
  // The nodes count the time from a moment that is a little earlier.
  const by = endMs - passedMs(clock) > pauseMs() ? "command" : "nodes";
  const last = { names: "" };
  const look = async (inner: AbortSignal): Promise<readonly FaultOnNode[] | undefined> => {
    const found = await survey(session, inner);
    const having = found.filter((each) => each.fault.id === fault.id).map(({ node }) => node);
    last.names = listedNodes(having);
    return having.length === 0 ? found : undefined;
  };
  const waitingFor = (): string => `${last.names} to heal the fault: ${fault.description}`;
  const rule = { ...ruleOf(waits.faultEnd, clock), shows: { progress, waitingFor } };
  const staying = await poll(look, rule, signal);
  progress.waiting("");
  if (staying === undefined) {
    throw new ClusterError(
      "deadline-passed",
      `The fault should have ended by itself on ${last.names}: ${fault.description}.`,
      {
        hint: `${runCommand("fault heal")}.`,
        facts: { fault: fault.id },
      },
    );
  }
  await showHealed(session, { ended: parts, staying, by }, work.signal);
}

interface Ended {
  readonly ended: readonly FaultOnNode[];
  readonly staying: readonly FaultOnNode[];
  readonly by: "nodes" | "command";
  readonly isInterrupted?: boolean;
}

async function showHealed(
  session: FaultSession,
  { ended, staying, by, isInterrupted = false }: Ended,
  signal: AbortSignal,
): Promise<void> {
  const { directory } = session.cluster;
  const faults = faultsOf(ended);
  for (const { id } of faults) await removeFaultNote(directory, id);
  // Other faults may keep the check from passing.
  const isCheckDue = !isInterrupted && staying.length === 0;
  if (isCheckDue && faults.some(({ awaitsCheck }) => awaitsCheck))
    await session.untilRecovered(signal);
  for (const { id, kind, description, nodes, awaitsCheck } of faults) {
    using step = session.runtime.progress.start("Heal fault", outside(description));
    const observe = async ({ node, fault }: FaultOnNode): Promise<readonly Observed[]> => {
      const { links } = fault;
      const request = { ...noLinks, links, record: fault, limitSeconds: 5 };
      try {
        return [await session.observe(node, request, signal)];
      } catch (error) {
        if (!hasErrorId(error, "connection-failed")) throw error;
        session.runtime.progress.warn(
          `${nodeReference(node)} does not show that it is healed: ${messageOf(error)}`,
        );
        return [];
      }
    };
    const parts = ended.filter(({ fault }) => fault.id === id);
    const observed = (await mapConcurrently(parts, nodesAtOnce, observe, signal)).flat();
    const healed = { kind: "fault", id, fault: kind, course: "healed" } as const;
    // The command that healed it has recorded that.
    const isIts = (event: ClusterEvent): boolean =>
      event.kind === "fault" && event.id === id && event.course === "healed";
    if (!(await readEvents(directory)).some(isIts))
      recordEvent(directory, { ...healed, text: description, nodes, by }, session.runtime);
    const others =
      staying.length === 0 ? "" : `; there are other faults: ${faultsOf(staying).length}`;
    step.done();
    const state = observed.length === 0 ? "no node answers" : faultRows[kind].state(observed);
    const recovered = isCheckDue && awaitsCheck === true ? "; every node's check passes" : "";
    session.runtime.progress.note(
      `Healed (${outside(description)}): ${state}${recovered}${others}.`,
    );
  }
}

const survey = async (session: FaultSession, signal: AbortSignal) =>
  (await askNodes(session, signal)).flatMap(({ parts }) => parts);

interface Asked {
  readonly node: NodeRecord;
  readonly parts: readonly FaultOnNode[];
  /** Why its faults are not known. */
  readonly failure?: unknown;
}

/** That no node has a fault is known only if one has answered. */
function assertAnswered(asked: readonly Asked[], named: readonly NodeRecord[] | undefined): void {
  const concerned = asked.filter(({ node }) => named?.includes(node) ?? true);
  const [first] = concerned;
  if (first !== undefined && concerned.every(({ failure }) => failure !== undefined))
    throw first.failure;
}

/** Asks all nodes for their faults, and warns of those that don't answer. */
async function askNodes(session: FaultSession, signal: AbortSignal): Promise<readonly Asked[]> {
  const running = session.cluster.nodes.filter(isReachable);
  const ask = async (node: NodeRecord): Promise<Asked> => {
    try {
      const { faults } = await session.observe(node, noLinks, signal);
      return { node, parts: faults.map((fault) => ({ node, fault })) };
    } catch (error) {
      signal.throwIfAborted();
      session.runtime.progress.warn(
        `The faults of ${nodeReference(node)} are not known: ${messageOf(error)}`,
      );
      return { node, parts: [], failure: error };
    }
  };
  return await mapConcurrently(running, nodesAtOnce, ask, signal);
}

const faultsOf = (found: readonly FaultOnNode[]): readonly Fault[] =>
  [...Map.groupBy(found, ({ fault }) => fault.id).values()].map(viewOf);

function viewOf(parts: readonly FaultOnNode[]): Fault {
  const [{ fault }] = parts as readonly [FaultOnNode, ...FaultOnNode[]];
  const { id, kind, description, awaitsCheck } = fault;
  const secondsLeft = Math.max(...parts.map((part) => part.fault.secondsLeft));
  return {
    id,
    kind,
    description,
    secondsLeft,
    nodes: parts.map(({ node }) => nodeReference(node)),
    ...(awaitsCheck !== undefined && { awaitsCheck }),
  };
}

/** Returns the observations to make on a node before and after a fault begins. */
const observationOf = (record: FaultRecord, request: FaultRequest): ObserveRequest => ({
  ...(faultRows[request.kind].pings?.(request) ?? { limitSeconds: 2, tries: 1 }),
  links: record.links,
  record,
});

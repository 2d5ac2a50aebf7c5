import type { ClusterRecord } from "../../model/cluster-record.ts";
import type { ConnectionPool } from "../../ssh/connection/connection-pool.ts";
import { withTasks } from "../../system/concurrency.ts";
import { type Clock, passedMs } from "../../system/runtime.ts";
import { orAborted } from "../../system/time-limit.ts";
import { type NodeAnswer, askNode } from "./ask-node.ts";
import type { MastersCheck, MastersChecker, Superuser, Wait } from "./masters-checker.ts";
import { hasTls, reportedLayout } from "./node-question.ts";

/** How a cluster is asked. */
export interface Questions {
  readonly connections: Pick<ConnectionPool, "connect">;
  /** The superuser; undefined if no login should be tried, as on an open source cluster. */
  readonly login: Superuser | undefined;
  /** Skips all requests that this machine sends to the masters' web servers. */
  readonly skipHttpChecks: boolean;
}

/** What is known of a cluster that is waited for. */
export interface WaitState {
  /** The backend's latest record. */
  cluster: ClusterRecord;
  /** The latest answer of each node, by its id. */
  readonly answers: Map<string, NodeAnswer>;
  /** First answers of nodes that need more time for their check. */
  readonly firstAnswers: Map<string, NodeAnswer>;
  /** What the masters' web servers lack; undefined while they are not asked. */
  ofMasters: readonly Wait[] | undefined;
  /** Whether anything was not ready at the first question, or was asked again. */
  hasWaited: boolean;
  /** Resolves with the next call of `change`. */
  readonly nextChange: () => Promise<void>;
  readonly change: () => void;
}

export function createWaitState(cluster: ClusterRecord): WaitState {
  const held = { next: Promise.withResolvers<void>() };
  return {
    cluster,
    answers: new Map(),
    firstAnswers: new Map(),
    ofMasters: undefined,
    hasWaited: false,
    nextChange: async () => held.next.promise,
    change: () => {
      held.next.resolve();
      held.next = Promise.withResolvers();
    },
  };
}

/** The latest answers, in the order of the nodes. */
export const answersOf = ({ cluster, answers }: WaitState): readonly NodeAnswer[] =>
  cluster.nodes.flatMap(({ id }) => answers.get(id) ?? []);

interface Following extends Pick<Questions, "connections"> {
  readonly state: WaitState;
  readonly clock: Clock;
}

const passesNeeded = 3;
/**
 * The last question, once everything is ready, looks once. It is not needed if everything was ready
 * at the first one.
 */
const looksOf = ({ hasWaited }: WaitState): number => passesNeeded - (hasWaited ? 1 : 0);
/** No node is asked more often on average, whatever it answers, and no master's web server. */
const periodMs = 1000;
/** How many questions may be early, because an installation goes through several states in quick succession. */
const earlyQuestions = 3;
/** How often a node that is ready is asked again while others are not. */
const readyPeriodMs = 15_000;

/**
 * Asks all nodes until `isEnough`, which is called after each change of the state. A node that has answered waits by
 * itself until it has another answer.
 */
export async function followAll(
  following: Following & Omit<MastersFollowing, "state">,
  isEnough: (signal: AbortSignal) => Promise<boolean>,
  signal: AbortSignal,
): Promise<void> {
  const { state } = following;
  await withTasks({ signal }, async (tasks) => {
    tasks.start(async (inner) => followMasters(following, inner.signal));
    const followed = new Set<string>();
    for (;;) {
      const next = state.nextChange();
      for (const { id } of state.cluster.nodes) {
        if (!followed.has(id))
          tasks.start(async (inner) => followNode(id, following, inner.signal));
        followed.add(id);
      }
      if (await isEnough(tasks.work.signal)) return;
      await orAborted(next, tasks.work.signal);
    }
  });
}

async function followNode(
  id: string,
  { state, connections, clock }: Following,
  signal: AbortSignal,
): Promise<void> {
  let dueMs = -Infinity;
  for (;;) {
    const before = state.answers.get(id);
    const isReady = before?.verdict.kind === "ready";
    if (isReady) await clock.sleep(readyPeriodMs, signal);
    // A machine that was restarted may have another address.
    const node = state.cluster.nodes.find((each) => each.id === id);
    if (node === undefined) return;
    const askedAtMs = passedMs(clock);
    const known = isReady ? undefined : before?.report?.seen;
    const onFirst = (answer: NodeAnswer): void => void state.firstAnswers.set(id, answer);
    const question = { connections, looks: isReady ? 1 : looksOf(state), known, onFirst };
    const answer = await askNode(node, question, signal);
    state.answers.set(id, answer);
    state.hasWaited ||= isReady || answer.verdict.kind !== "ready";
    state.change();
    const early = answer.report?.seen === undefined ? 0 : earlyQuestions;
    dueMs = Math.max(dueMs, askedAtMs - early * periodMs) + periodMs;
    await clock.sleep(Math.max(0, dueMs - passedMs(clock)), signal);
  }
}

interface MastersFollowing {
  readonly state: WaitState;
  readonly clock: Clock;
  readonly checkOf: () => MastersCheck | undefined;
  readonly checkMasters: MastersChecker;
}

/**
 * Asks the masters' web servers as soon as all masters are ready, so that a wrong password shows
 * before the last agent is up.
 */
async function followMasters(
  { state, clock, checkOf, checkMasters }: MastersFollowing,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    const next = state.nextChange();
    const check = checkOf();
    if (check === undefined) {
      state.ofMasters = undefined;
      await orAborted(next, signal);
      continue;
    }
    let waits = await checkMasters(check, signal);
    for (let looks = 1; looks < looksOf(state) && waits.length === 0; looks += 1)
      waits = await checkMasters(check, signal);
    state.ofMasters = waits;
    state.hasWaited ||= waits.length > 0;
    state.change();
    await clock.sleep(periodMs, signal);
  }
}

/** Returns the questions for the masters; undefined while they are not asked. */
export function mastersCheck(state: WaitState, request: Questions): MastersCheck | undefined {
  const { cluster, answers } = state;
  const masters = cluster.nodes.filter(({ role }) => role === "master");
  const areReady = masters.every(({ id }) => answers.get(id)?.verdict.kind === "ready");
  const report = masters[0] && answers.get(masters[0].id)?.report;
  const layout = report && reportedLayout(report);
  if (request.skipHttpChecks || !areReady || report === undefined || layout?.web === undefined)
    return undefined;
  // The library can create a cluster before its platform is known. Then nothing leads to a port of the platform's own.
  if (layout.web.endpoint !== undefined && cluster.webUi === undefined) return undefined;
  return {
    variant: cluster.variant,
    layout,
    isTlsEnabled: hasTls(layout, report) ?? false,
    masters,
    agentCount: cluster.nodes.length - masters.length,
    login: request.login,
    connections: request.connections,
  };
}

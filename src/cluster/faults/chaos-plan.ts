/**
 * Faults drawn at random. The plan is a pure function of the seed, the nodes' names and the options: the same on every
 * backend and computer. Random numbers come from mulberry32, a generator of 32 bits by Tommy Ettinger.
 */
import {
  type ClusterRecord,
  type Counts,
  type NodeRecord,
  nodeReference,
  roles,
} from "../../model/cluster-record.ts";
import { ClusterError } from "../../errors.ts";
import { wholeNumber } from "../../model/rule.ts";
import { optionName } from "../../references.ts";
import type { Draw } from "../../platform/faults/fault-kind.ts";
import {
  type FaultKind,
  type FaultOptionValues,
  type FaultRequest,
  faultKinds,
  faultRows,
} from "../../platform/faults/fault-kinds.ts";
import { formatDuration } from "../../system/amounts.ts";
import { assertPossible, faultProblems } from "./plan-fault.ts";

export const chaosTargets = ["one", "minority", "majority"] as const;
export type ChaosTarget = (typeof chaosTargets)[number];

/** Options of kinds apply to every fault of that kind; what isn't given is drawn. */
export interface ChaosOptions extends FaultOptionValues {
  /** From 0 to 2^32 - 1. */
  readonly seed: number;
  /** How long it takes from one fault to the next. Each fault is over before. */
  readonly everyMs: number;
  readonly kinds: readonly FaultKind[];
  /**
   * How many nodes a fault concerns: of the masters, or of the others. Only `majority` takes more
   * nodes than these can do without.
   */
  readonly targets: readonly ChaosTarget[];
  /** The time in which every node's check must pass again after each fault; absent: nothing is checked. */
  readonly recoverMs?: number | undefined;
  /** Only the faults with these numbers; absent: all. */
  readonly only?: readonly number[] | undefined;
}

/** What a plan depends on. */
interface ChaosCluster {
  readonly nodes: readonly Pick<NodeRecord, "role" | "index" | "state">[];
}

/** What is used without further options. */
export const usualChaos = {
  everyMs: 30_000,
  kinds: ["partition"],
  targets: ["one", "minority"],
} as const satisfies Partial<ChaosOptions>;

export interface ChaosStep {
  /** Counted from 1. */
  readonly number: number;
  /** After the beginning of the run. */
  readonly atMs: number;
  readonly request: FaultRequest;
}

const [leastEveryMs, mostEveryMs] = [5_000, 24 * 60 * 60_000];
const seedRule = wholeNumber(0, 2 ** 32 - 1);
/** All faults before one of `only` are drawn too. */
const highestNumber = 100_000;
const numberRule = wholeNumber(1, highestNumber);
/** Options of faults that are drawn, or that concern nodes which are. */
export const drawnOptions: ReadonlySet<string> = new Set([
  "between",
  "and",
  "shape",
  "until",
  "untilNodes",
]);

/** Empty lists, and switches that are off, count as absent. */
export const isGiven = (value: unknown): boolean =>
  value !== undefined && value !== false && !(Array.isArray(value) && value.length === 0);

/** Returns all problems with the options. */
export function chaosProblems(options: ChaosOptions): readonly string[] {
  const { seed, everyMs, kinds, targets, only = [1] } = options;
  const isSeed = seedRule.read(seed) !== undefined;
  const each = isSeed
    ? kinds.flatMap((kind) =>
        faultProblems(requestOf(options, { kind, victims: ["agent_0"] }, drawFrom(seed))),
      )
    : [`${optionName("seed")}: must be ${seedRule.what}`];
  return [
    ...new Set(each),
    ...[...drawnOptions]
      .filter((name) => isGiven(options[name as keyof FaultOptionValues]))
      .map((name) => `${optionName(name)}: not for random faults`),
    ...faultKinds
      .filter((kind) => !kinds.includes(kind))
      .flatMap((owner) =>
        Object.keys(faultRows[owner].options)
          .filter((name) => isGiven(options[name as keyof FaultOptionValues]))
          .filter((name) => !kinds.some((kind) => Object.hasOwn(faultRows[kind].options, name)))
          .map((name) => `${optionName(name)}: only for ${owner}`),
      ),
    ...(kinds.length === 0 ? [`${optionName("kinds")}: name one at least`] : []),
    ...(new Set(kinds).size < kinds.length ? [`${optionName("kinds")}: name each once`] : []),
    ...(targets.length === 0 ? [`${optionName("targets")}: name one at least`] : []),
    ...(only.length > 0 && only.every((number) => numberRule.read(number) !== undefined)
      ? []
      : [`${optionName("only")}: must be numbers of faults, from 1 to ${highestNumber}`]),
    ...(everyMs >= leastEveryMs && everyMs <= mostEveryMs
      ? []
      : [`${optionName("everyMs")}: must be from 5 s to 24 h`]),
  ];
}

/** Yields the faults, without an end. Throws `bad-usage` if the cluster has too few nodes for them. */
export function* chaosSteps(
  cluster: ChaosCluster,
  options: ChaosOptions,
): Generator<ChaosStep, never> {
  const choices = choicesOf(cluster, options.targets);
  const [first, ...others] = choices;
  if (first === undefined)
    throw new ClusterError(
      "bad-usage",
      `The cluster has no node that it can do without: ${options.targets.join(", ")}.`,
      {
        hint: `Start the nodes that don't run, pass ${optionName("targets", "majority")}, or create a cluster with three masters or two agents.`,
      },
    );
  const draw = drawFrom(options.seed);
  const running = cluster.nodes.filter(({ state }) => state === "running").length;
  for (let number = 1; ; number += 1) {
    const { group, count } = draw.among([first, ...others]);
    const victims = drawSome(draw, group, count);
    const kind = draw.among(kindsFor(options.kinds, victims.length === running));
    const request = requestOf(options, { kind, victims }, draw);
    if (options.only?.includes(number) ?? true)
      yield { number, atMs: (number - 1) * options.everyMs, request };
  }
}

/** Throws `bad-usage` if a new cluster of so many nodes could not have these faults. */
export function assertChaosFits(
  { backend, counts }: Pick<ClusterRecord, "backend"> & { readonly counts: Counts },
  options: ChaosOptions,
): void {
  for (const kind of options.kinds) assertPossible({ backend }, kind);
  const nodes = roles.flatMap((role) =>
    Array.from({ length: counts[role] }, (_, index) => ({
      role,
      index,
      state: "running" as const,
    })),
  );
  chaosSteps({ nodes }, options).next();
}

/** The faults that begin within this time. */
export function chaosPlan(
  cluster: ChaosCluster,
  { durationMs, ...options }: ChaosOptions & { readonly durationMs: number },
): readonly ChaosStep[] {
  const found: ChaosStep[] = [];
  const last = Math.max(...(options.only ?? [Infinity]));
  for (const step of chaosSteps(cluster, options)) {
    if (step.atMs < durationMs) found.push(step);
    if (step.number >= last || step.atMs + options.everyMs >= durationMs) break;
  }
  if (found.length === 0)
    throw new ClusterError("bad-usage", `The plan has fewer faults: ${optionName("only")}.`, {
      hint: `Allow it more time, or name faults that begin within ${formatDuration(durationMs)}.`,
    });
  return found;
}

/** `3. after 60.0 s: process on master_1 for 12.0 s (unit etcd, signal kill)` */
export function stepText({ number, atMs, request }: ChaosStep): string {
  const { kind, durationMs, nodes, between, ...values } = request;
  const given = Object.entries(values).flatMap(([name, value]) => {
    if (value === undefined || value === false) return [];
    const { flag = name, suffix = "" } = faultRows[kind].options[name] ?? {};
    const word = flag.replace(/^--/, "");
    return [value === true ? word : `${word} ${String(value)}${suffix}`];
  });
  const more = given.length === 0 ? "" : ` (${given.join(", ")})`;
  const where = (nodes ?? between ?? []).join(", ");
  return `${number}. after ${formatDuration(atMs)}: ${kind} on ${where} for ${formatDuration(durationMs)}${more}`;
}

/** All nodes together have nobody from whom they could be cut off. */
function kindsFor(
  kinds: readonly FaultKind[],
  isEveryNode: boolean,
): readonly [FaultKind, ...FaultKind[]] {
  const [first, ...others] = kinds.filter((kind) => !isEveryNode || faultRows[kind].takesNodes);
  if (first !== undefined) return [first, ...others];
  throw new ClusterError("bad-usage", "The cluster has no other node to separate nodes from.", {
    hint: `Name another of ${optionName("kinds")}, or create a cluster with more nodes.`,
  });
}

interface Choice {
  readonly group: readonly string[];
  readonly count: number;
}

/**
 * The sets of nodes from which a fault's nodes are drawn, and how many. A node that doesn't run counts as one that the
 * cluster does without already.
 */
function choicesOf({ nodes }: ChaosCluster, targets: readonly ChaosTarget[]): readonly Choice[] {
  const existing = nodes
    .filter(({ state }) => state !== "ended" && state !== "ending")
    .toSorted((a, b) => roles.indexOf(a.role) - roles.indexOf(b.role) || a.index - b.index);
  const masters = existing.filter(({ role }) => role === "master");
  const others = existing.filter(({ role }) => role !== "master");
  // A majority of the masters must stay, and one of the others.
  return [
    ...sizesOf(masters, Math.floor(masters.length / 2) + 1, targets),
    ...sizesOf(others, 1, targets),
  ];
}

function sizesOf(
  nodes: ChaosCluster["nodes"],
  needed: number,
  targets: readonly ChaosTarget[],
): readonly Choice[] {
  const group = nodes.filter(({ state }) => state === "running").map(nodeReference);
  const spare = Math.max(0, group.length - needed);
  const counts: Readonly<Record<ChaosTarget, number>> = {
    one: Math.min(1, spare),
    minority: Math.min(Math.floor((nodes.length - 1) / 2), spare),
    majority: Math.floor(nodes.length / 2) + 1,
  };
  return chaosTargets
    .filter((target) => targets.includes(target))
    .map((target) => ({ group, count: counts[target] }))
    .filter(({ count }) => count > 0 && count <= group.length);
}

function requestOf(
  options: ChaosOptions,
  { kind, victims }: { readonly kind: FaultKind; readonly victims: readonly string[] },
  draw: Draw,
): FaultRequest {
  const row = faultRows[kind];
  const given = Object.fromEntries(
    Object.keys(row.options).flatMap((name) => {
      const value = options[name as keyof FaultOptionValues];
      return isGiven(value) ? [[name, value]] : [];
    }),
  ) as FaultOptionValues;
  // Healed before the next one begins.
  const seconds = Math.max(1, Math.round((options.everyMs * draw.between(30, 60)) / 100_000));
  return {
    kind,
    durationMs: seconds * 1000,
    ...(row.takesNodes && { nodes: victims }),
    ...given,
    ...row.random?.(draw, victims, given),
  };
}

/** Draws so many in the order of the group. */
function drawSome(draw: Draw, group: readonly string[], count: number): readonly string[] {
  const left = [...group];
  while (left.length > count) left.splice(draw.between(0, left.length - 1), 1);
  return left;
}

/** mulberry32 */
function drawFrom(seed: number): Draw {
  const state = { value: seed >>> 0 };
  const next = (): number => {
    state.value = (state.value + 0x6d2b79f5) >>> 0;
    let mixed = state.value;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const between = (from: number, to: number): number => from + Math.floor(next() * (to - from + 1));
  return {
    between,
    among: (choices) => choices[between(0, choices.length - 1)] ?? choices[0],
  };
}

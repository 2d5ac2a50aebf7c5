/** What a run should have noticed in the nodes' logs, and what one of our own faults or power changes explains. */
import type { ClusterEvent } from "../../model/event.ts";
import type { Noticeable } from "../../platform/faults/fault-kind.ts";
import { type FaultKind, faultRows } from "../../platform/faults/fault-kinds.ts";
import type { LogLine } from "../logs/log-lines.ts";
import { inTurns, partsOf } from "../logs/merged-lines.ts";
import { signOf } from "./signs.ts";

const power = "power";
const explainedByPower: readonly Noticeable[] = ["clock-jump", "failed-unit", "reboot"];

/** What may be the effect of a fault of this kind or of a power change. A kind of a newer program explains nothing. */
const explainedBy = (kind: string): readonly Noticeable[] =>
  kind === power
    ? explainedByPower
    : Object.hasOwn(faultRows, kind)
      ? faultRows[kind as FaultKind].explains
      : [];

export interface Noticed {
  readonly line: LogLine;
  readonly what: string;
  /** What explains it, such as `disk /var filled on agent_0`. */
  readonly explanation: string | undefined;
}

/** When something of ours had an effect on nodes. */
export interface Window {
  readonly kind: string;
  readonly text: string;
  readonly nodes: readonly string[];
  readonly startMs: number;
  /** When it was healed; later effects may follow for `afterMs`. */
  readonly endMs: number;
}

const afterMs = 15_000;
const beforeMs = 2_000;

/** More lines of one kind in one log are not kept. */
const mostOfKind = 500;
/** Returns whether so many lines of this kind have not been there yet. */
const kindCounter =
  (most: number, counts = new Map<string, number>()) =>
  (kind: string): boolean => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count <= most;
  };

/** The lines of one log that `notice` would look at. */
export function telling(lines: readonly LogLine[]): readonly LogLine[] {
  const isOneOfFew = kindCounter(mostOfKind);
  return lines.filter((line) => {
    const sign = signOf(line);
    return sign !== undefined && isOneOfFew(sign.id);
  });
}

/** Each line may be compared with every window. More than the last of them would take minutes. */
const mostWindows = 5000;
/** After so many for one kind on one node, its further lines are not looked at. */
const mostComparisons = 2_500_000;

/**
 * Returns the first line of each kind on each node that nothing explains, and the first that
 * something does, in order.
 */
export async function notice(
  lines: readonly LogLine[],
  windows: readonly Window[],
  signal: AbortSignal,
): Promise<readonly Noticed[]> {
  const found = new Map<string, Noticed>();
  const last = windows.slice(-mostWindows);
  const isOneOfFew = kindCounter(mostComparisons / Math.max(1, last.length));
  const judge = (line: LogLine): void => {
    const sign = signOf(line);
    const own = `${line.node} ${sign?.id}`;
    if (sign === undefined || !isOneOfFew(own)) return;
    const explanation = explanationOf(sign.id, line, last);
    const key = `${own} ${explanation === undefined}`;
    if (!found.has(key)) found.set(key, { line, what: sign.what, explanation });
  };
  await inTurns(partsOf(lines), signal, (part) => (part.forEach(judge), []));
  return [...found.values()].toSorted(
    (a, b) =>
      Number(a.explanation !== undefined) - Number(b.explanation !== undefined) ||
      (a.line.ms ?? 0) - (b.line.ms ?? 0),
  );
}

/** Whatever is done to a node may disturb the platform on it. */
const ofPlatform: readonly Noticeable[] = ["error-line", "watch"];

/** Returns what explains such a line: of all that may, what began last is the likeliest cause. */
export const explanationOf = (
  sign: Noticeable,
  { node, ms }: Pick<LogLine, "node" | "ms">,
  windows: readonly Window[],
): string | undefined =>
  windows.findLast(
    ({ kind, nodes, startMs, endMs }) =>
      ms !== undefined &&
      ms >= startMs - beforeMs &&
      ms <= endMs + afterMs &&
      (explainedBy(kind).includes(sign) || ofPlatform.includes(sign)) &&
      nodes.includes(node),
  )?.text;

/**
 * The windows of faults and power changes that events describe. One without an end lasts until
 * `untilMs`, but a power change no longer than a slow boot. The nodes count a fault's time from when
 * it began on them, which is known no better than by when it was shown.
 */
export function windowsOf(events: readonly ClusterEvent[], untilMs: number): readonly Window[] {
  const windows: { -readonly [Key in keyof Window]: Window[Key] }[] = [];
  const open = new Map<string, (typeof windows)[number]>();
  for (const each of events) {
    const event = restoreAsPower(each);
    if (event.kind !== "fault" && event.kind !== "power") continue;
    const ms = Date.parse(event.at);
    const isFault = event.kind === "fault";
    const key = isFault ? event.id : `${event.action} ${event.nodes.join(" ")}`;
    const lastsMs = isFault ? (event.seconds ?? Infinity) * 1000 : 0;
    const boots = isFault ? event.fault === power : bootingActions.test(event.action);
    const begun = open.get(key);
    if (event.course === "begun") {
      const window = {
        kind: isFault ? event.fault : power,
        text: isFault ? event.text : event.action,
        nodes: event.nodes,
        startMs: ms,
        endMs: Math.min(ms + lastsMs + (isFault && !boots ? 0 : powerMs), Math.max(untilMs, ms)),
      };
      open.set(key, window);
      windows.push(window);
    } else if (begun !== undefined) {
      const endMs = ms + (boots ? bootMs : 0);
      if (event.course === "shown") begun.endMs = Math.min(endMs + lastsMs, Math.max(untilMs, ms));
      else begun.endMs = Math.min(begun.endMs, endMs);
    }
  }
  return windows;
}

const bootingActions = /^(?:Start|Restart|Resume|Restore)\b/;

/** A snapshot that is restored sets clocks as Resume does, or boots the nodes as Restart does. */
const restoreAsPower = (event: ClusterEvent): ClusterEvent =>
  event.kind === "snapshot" && event.action === "restore"
    ? {
        at: event.at,
        kind: "power",
        action: `Restore ${event.name}`,
        nodes: event.nodes ?? [],
        course: event.course,
      }
    : event;

/** How long a power change takes at most, with a translated processor, and how long nodes boot once it is done. */
const [powerMs, bootMs] = [20 * 60_000, 45_000];

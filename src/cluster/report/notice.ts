/** What a run should have noticed in the nodes' logs, and what one of our own faults or power changes explains. */
import type { ClusterEvent } from "../../model/event.ts";
import type { Noticeable } from "../../platform/faults/fault-kind.ts";
import { type FaultKind, faultRows } from "../../platform/faults/fault-kinds.ts";
import type { LogLine } from "../logs/log-lines.ts";

interface Sign {
  readonly id: Noticeable;
  readonly what: string;
  /** Takes linear time. */
  readonly shape: RegExp;
}

const power = "power";
const explainedByPower: readonly Noticeable[] = ["clock-jump", "failed-unit", "reboot"];

/** What may be the effect of a fault of this kind or of a power change. A kind of a newer program explains nothing. */
const explainedBy = (kind: string): readonly Noticeable[] =>
  kind === power
    ? explainedByPower
    : Object.hasOwn(faultRows, kind)
      ? faultRows[kind as FaultKind].explains
      : [];

const signs: readonly Sign[] = [
  {
    id: "oom",
    what: "out of memory",
    shape:
      /out of memory: kill|oom-kill:|invoked oom-killer|killed by the OOM killer|result 'oom-kill'/i,
  },
  {
    id: "panic",
    what: "kernel error",
    shape: /kernel BUG at|\bBUG: |\bOops: |general protection fault|Kernel panic/,
  },
  { id: "core-dump", what: "core dump", shape: /dumped core|core dumped|code=dumped/ },
  { id: "full-disk", what: "full disk", shape: /no space left on device|\bENOSPC\b/i },
  {
    id: "clock-jump",
    what: "clock jump",
    shape: /Time has been changed|clock (?:has )?jumped|Time jumped (?:for|back)ward/i,
  },
  {
    id: "failed-unit",
    what: "failed unit",
    shape:
      /\.(?:service|mount|scope|socket|timer): Failed with result|entered failed state|\.service: Main process exited, code=(?:killed|dumped)/,
  },
  { id: "reboot", what: "restart of the node", shape: /^-- (?:Reboot|Boot [0-9a-f]{8})/ },
];

const errorShape =
  /\b(?:error|errors|fatal|panic|failed|failure|critical|traceback|exception|segfault|refused|denied|unreachable|split.?brain)\b|\b(?:lost|no|without|loses) (?:the |a )?(?:leader|quorum|majority)\b/i;
const harmless = /\b(?:0|no) (?:error|failure)s?\b|error[-_]log|errors?[=:] ?(?:0|none|null)\b/i;

export const isError = ({ text }: LogLine): boolean =>
  errorShape.test(text) && !harmless.test(text);

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

/** Returns the first line of each kind on each node that nothing explains, and the first that something does, in order. */
export function notice(lines: readonly LogLine[], windows: readonly Window[]): readonly Noticed[] {
  const found = new Map<string, Noticed>();
  for (const line of lines) {
    const kind = signs.find(({ shape }) => shape.test(line.text));
    if (kind === undefined) continue;
    // What began last is the likeliest cause.
    const explanation = windows.findLast(
      ({ kind: cause, nodes, startMs, endMs }) =>
        explainedBy(cause).includes(kind.id) &&
        nodes.includes(line.node) &&
        line.ms !== undefined &&
        line.ms >= startMs - beforeMs &&
        line.ms <= endMs + afterMs,
    )?.text;
    const key = `${line.node} ${kind.what} ${explanation === undefined}`;
    if (!found.has(key)) found.set(key, { line, what: kind.what, explanation });
  }
  return [...found.values()].toSorted(
    (a, b) =>
      Number(a.explanation !== undefined) - Number(b.explanation !== undefined) ||
      (a.line.ms ?? 0) - (b.line.ms ?? 0),
  );
}

/** The windows of faults and power changes that events describe. One without an end lasts until `untilMs`. */
export function windowsOf(events: readonly ClusterEvent[], untilMs: number): readonly Window[] {
  const open = new Map<string, Window>();
  for (const event of events) {
    if (event.kind !== "fault" && event.kind !== "power") continue;
    const ms = Date.parse(event.at);
    const isFault = event.kind === "fault";
    const key = isFault ? event.id : `${event.action} ${event.nodes.join(" ")} ${ms}`;
    if (event.course === "begun") {
      const limitMs = isFault ? ms + (event.seconds ?? Infinity) * 1000 : ms + powerMs;
      open.set(key, {
        kind: isFault ? event.fault : power,
        text: isFault ? event.text : event.action,
        nodes: event.nodes,
        startMs: ms,
        endMs: Math.min(limitMs, Math.max(untilMs, ms)),
      });
    } else if (isFault && (event.course === "healed" || event.course === "failed")) {
      const begun = open.get(key);
      if (begun !== undefined) open.set(key, { ...begun, endMs: Math.min(begun.endMs, ms) });
    }
  }
  return [...open.values()];
}

/** Long enough for a node to boot. */
const powerMs = 5 * 60_000;

/**
 * Draws the timeline as SVG without a view box: positions are percentages, so that zooming is a
 * matter of its width.
 */
import type { ClusterEvent } from "../../model/event.ts";
import type { TestCase } from "./read-cases.ts";
import type { Noticed, Window } from "./notice.ts";

interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

export interface TimelineParts {
  readonly span: Span;
  readonly nodes: readonly string[];
  readonly events: readonly ClusterEvent[];
  readonly windows: readonly Window[];
  readonly noticed: readonly Noticed[];
  readonly cases: readonly TestCase[];
}

interface Bar extends Span {
  readonly style: string;
  readonly text: string;
}

const [laneHeight, axisHeight] = [26, 22];
const ticks = 48;
const longestText = 300;
/** A page with more of either would be slow to show. */
const [mostLanes, timelineBytes] = [500, 1_200_000];

interface Timeline {
  readonly svg: string;
  /** The lanes' names, which stay in sight beside the drawing. */
  readonly lanes: readonly string[];
  /** How many bars and marks are not drawn. */
  readonly left: number;
}

/** Draws what is noticed, then faults, commands and steps, then nodes' states, until a limit is reached. */
export function drawTimeline(parts: TimelineParts): Timeline {
  const { span, windows, cases, events } = parts;
  const own: readonly (readonly [name: string, bars: readonly Bar[]])[] = [
    ["steps", barsOf(events, span, "phase")],
    ["commands", barsOf(events, span, "run")],
    [
      "tests",
      cases.map(({ name, hasFailed, isSkipped, ...times }) => ({
        ...times,
        text: isSkipped ? `${name}: skipped` : name,
        style: hasFailed ? "bad" : isSkipped ? "off" : "good",
      })),
    ],
  ];
  const rows = own.filter(([, bars]) => bars.length > 0);
  const nodes = parts.nodes.slice(0, mostLanes);
  const lanes = [...rows.map(([name]) => name), ...nodes];
  const tops = new Map(lanes.map((lane, index) => [lane, axisHeight + index * laneHeight]));
  const states = statesOf(parts);
  const box = placer(span);
  const limit = { bytes: timelineBytes, left: 0 };
  const marks = fitting(limit, parts.noticed, ({ line, what, explanation }) => {
    const top = tops.get(line.node);
    return line.ms === undefined || top === undefined
      ? []
      : [mark(box.at(line.ms), top, `${what}: ${line.text}`, explanation === undefined)];
  });
  const shades = fitting(limit, windows, ({ kind, text, startMs, endMs, nodes: affected }) => {
    const bar = { startMs, endMs, text, style: kind === "power" ? "power" : "fault" };
    return affected.flatMap((node) => {
      const top = tops.get(node);
      return top === undefined ? [] : [box(bar, top, laneHeight)];
    });
  });
  const bars = rows.flatMap(([name, all]) =>
    fitting(limit, all.toReversed(), (bar) => [box(bar, (tops.get(name) ?? 0) + 5, 16)]),
  );
  const stateBars = nodes.flatMap((node) =>
    fitting(limit, (states.get(node) ?? []).toReversed(), (bar) => [
      box(bar, (tops.get(node) ?? 0) + 9, 8),
    ]),
  );
  const frame = [
    ...axis(span, lanes.length),
    ...[...tops.values()].map((y) => `<line class="lane" x1="0" x2="100%" y1="${y}" y2="${y}"/>`),
  ];
  const drawn = [...frame, ...stateBars, ...shades, ...bars, ...marks];
  const height = axisHeight + lanes.length * laneHeight;
  return {
    svg: `<svg id="timeline" data-start="${span.startMs}" data-length="${Math.max(1, span.endMs - span.startMs)}" width="100%" height="${height}" role="img" tabindex="0" aria-label="Timeline">${drawn.join("\n")}<line id="cursor" y1="0" y2="100%" x1="-9" x2="-9"/></svg>`,
    lanes,
    left: limit.left + parts.nodes.length - nodes.length,
  };
}

/** Renders items until the limit is reached, and counts the others. */
function fitting<Item>(
  limit: { bytes: number; left: number },
  items: readonly Item[],
  render: (item: Item) => readonly string[],
): readonly string[] {
  const rendered: string[] = [];
  for (const item of items) {
    const texts = limit.bytes > 0 ? render(item) : [];
    if (limit.bytes <= 0) limit.left += 1;
    for (const text of texts) {
      limit.bytes -= Buffer.byteLength(text) + 1;
      if (limit.bytes > 0) rendered.push(text);
      else limit.left += 1;
    }
  }
  return rendered;
}

function placer(span: Span) {
  const lengthMs = Math.max(1, span.endMs - span.startMs);
  const at = (ms: number): number =>
    Math.min(100, Math.max(0, ((ms - span.startMs) / lengthMs) * 100));
  const place = ({ startMs, endMs, style, text }: Bar, top: number, height: number): string => {
    const [left, right] = [at(startMs), at(endMs)];
    const width = Math.max(0.1, right - left);
    return `<rect class="${style}" x="${left.toFixed(3)}%" width="${width.toFixed(3)}%" y="${top}" height="${height}"><title>${titleOf(text)}</title></rect>`;
  };
  return Object.assign(place, { at });
}

const mark = (left: number, top: number, text: string, isBad: boolean): string =>
  `<circle class="${isBad ? "notice" : "explained"}" cx="${left.toFixed(3)}%" cy="${top + 13}" r="6"><title>${titleOf(text)}</title></circle>`;

const titleOf = (text: string): string =>
  Bun.escapeHTML(text.length > longestText ? `${text.slice(0, longestText)}…` : text);

function axis({ startMs, endMs }: Span, lanes: number): readonly string[] {
  const height = axisHeight + lanes * laneHeight;
  return Array.from({ length: ticks }, (_, index) => {
    const [left, ms] = [(index / ticks) * 100, startMs + ((endMs - startMs) * index) / ticks];
    const style = index % 24 === 0 ? "tick" : index % 8 === 0 ? "tick mid" : "tick minor";
    return `<g class="${style}"><line x1="${left}%" x2="${left}%" y1="0" y2="${height}"/><text x="${left}%" dx="3" y="14">${timeText(ms, startMs)}</text></g>`;
  });
}

/** The time, after the date if that is another one than at the start. */
export function timeText(ms: number, startMs: number): string {
  const [text, start] = [ms, startMs].map((each) => new Date(each).toISOString());
  const isSameDay = text?.slice(0, 10) === start?.slice(0, 10);
  return (text ?? "").slice(isSameDay ? 11 : 0, 23).replace("T", " ");
}

/** Pairs the beginnings and ends of phases or commands. One without an end lasts until the end of the timeline. */
function barsOf(
  events: readonly ClusterEvent[],
  { endMs }: Span,
  kind: "phase" | "run",
): readonly Bar[] {
  const open = new Map<string, Bar[]>();
  const bars: Bar[] = [];
  for (const event of events) {
    if (event.kind !== kind) continue;
    const text =
      event.kind === "run"
        ? `${event.nodes.join(", ") || "this computer"}: ${event.command}`
        : `${event.title}${event.subject === undefined ? "" : ` ${event.subject}`}`;
    const ms = Date.parse(event.at);
    const equal = open.get(text) ?? [];
    open.set(text, equal);
    if (event.course === "begun") {
      equal.push({ startMs: ms, endMs, style: "open", text });
      continue;
    }
    // Which of several equal ones has ended is not known, and makes no difference to the eye.
    const begun = equal.shift();
    const ended = event.kind === "run" ? `, ${statusText(event)}` : `: ${event.course}`;
    const style = event.course === "done" ? "good" : "bad";
    if (begun !== undefined) bars.push({ ...begun, endMs: ms, style, text: `${text}${ended}` });
  }
  return [...bars, ...[...open.values()].flat()];
}

/** How a command ended, in words. */
export const statusText = ({ course, status, text }: RunEvent): string =>
  course === "begun"
    ? "it has not ended"
    : status === undefined
      ? `no status: ${text || "it did not run to its end"}`
      : `status ${status}${text === undefined ? "" : `: ${text}`}`;

export type RunEvent = Extract<ClusterEvent, { readonly kind: "run" }>;

/** What is known of nodes' states and readiness, as bars from one event to the next. */
function statesOf({ events, span }: TimelineParts): ReadonlyMap<string, readonly Bar[]> {
  const bars = new Map<string, { -readonly [Key in keyof Bar]: Bar[Key] }[]>();
  for (const event of events) {
    if (event.kind !== "node" && event.kind !== "check") continue;
    const ms = Date.parse(event.at);
    const [style, text] =
      event.kind === "node"
        ? [event.state === "running" ? "running" : "off", event.state]
        : [event.isReady ? "good" : "waiting", event.text];
    const own = bars.get(event.node) ?? [];
    bars.set(event.node, own);
    const last = own.at(-1);
    if (last !== undefined) last.endMs = ms;
    own.push({ startMs: ms, endMs: span.endMs, style, text: `${event.node}: ${text}` });
  }
  return bars;
}

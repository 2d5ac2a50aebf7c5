/** Draws the timeline as SVG without a view box: positions are percentages, so that zooming is a matter of its width. */
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
const mostBars = 3000;
const ticks = 48;
const escaped = (text: string): string => Bun.escapeHTML(text);

/** Also returns the lanes' names, which stay in sight beside the drawing. */
export function drawTimeline(parts: TimelineParts): { svg: string; lanes: readonly string[] } {
  const { span, nodes, windows, cases } = parts;
  const own: readonly (readonly [name: string, bars: readonly Bar[]])[] = [
    ["steps", barsOf(parts.events, span, "phase")],
    ["commands", barsOf(parts.events, span, "run")],
    [
      "tests",
      cases.map((each) => ({ ...each, text: each.name, style: each.hasFailed ? "bad" : "good" })),
    ],
  ];
  const rows = own.filter(([, bars]) => bars.length > 0);
  const lanes = [...rows.map(([name]) => name), ...nodes];
  const topOf = (lane: string): number => axisHeight + lanes.indexOf(lane) * laneHeight;
  const box = placer(span);
  const drawn = [
    ...axis(span, lanes.length),
    ...lanes.map(
      (lane) => `<line class="lane" x1="0" x2="100%" y1="${topOf(lane)}" y2="${topOf(lane)}"/>`,
    ),
    ...nodes.flatMap((node) => statesOf(node, parts).map((bar) => box(bar, topOf(node) + 9, 8))),
    ...windows.flatMap(({ kind, text, startMs, endMs, nodes: affected }) =>
      nodes
        .filter((node) => affected.includes(node))
        .map((node) =>
          box(
            { startMs, endMs, text, style: kind === "power" ? "power" : "fault" },
            topOf(node),
            laneHeight,
          ),
        ),
    ),
    ...rows.flatMap(([name, bars]) =>
      bars.slice(-mostBars).map((bar) => box(bar, topOf(name) + 5, 16)),
    ),
    ...parts.noticed.flatMap(({ line, what, explanation }) =>
      line.ms === undefined || !nodes.includes(line.node)
        ? []
        : [
            mark(
              box.at(line.ms),
              topOf(line.node),
              `${what}: ${line.text}`,
              explanation === undefined,
            ),
          ],
    ),
  ];
  const height = axisHeight + lanes.length * laneHeight;
  return {
    svg: `<svg id="timeline" data-start="${span.startMs}" data-length="${Math.max(1, span.endMs - span.startMs)}" width="100%" height="${height}" role="img" tabindex="0" aria-label="Timeline">${drawn.join("\n")}<line id="cursor" y1="0" y2="100%" x1="-9" x2="-9"/></svg>`,
    lanes,
  };
}

function placer(span: Span) {
  const lengthMs = Math.max(1, span.endMs - span.startMs);
  const at = (ms: number): number =>
    Math.min(100, Math.max(0, ((ms - span.startMs) / lengthMs) * 100));
  const place = ({ startMs, endMs, style, text }: Bar, top: number, height: number): string => {
    const [left, right] = [at(startMs), at(endMs)];
    const width = Math.max(0.1, right - left);
    return `<rect class="${style}" x="${left.toFixed(3)}%" width="${width.toFixed(3)}%" y="${top}" height="${height}"><title>${escaped(text)}</title></rect>`;
  };
  return Object.assign(place, { at });
}

const mark = (left: number, top: number, text: string, isBad: boolean): string =>
  `<circle class="${isBad ? "notice" : "explained"}" cx="${left.toFixed(3)}%" cy="${top + 13}" r="6"><title>${escaped(text)}</title></circle>`;

function axis({ startMs, endMs }: Span, lanes: number): readonly string[] {
  const height = axisHeight + lanes * laneHeight;
  return Array.from({ length: ticks }, (_, index) => {
    const [left, ms] = [(index / ticks) * 100, startMs + ((endMs - startMs) * index) / ticks];
    const style = index % 8 === 0 ? "tick" : "tick minor";
    return `<g class="${style}"><line x1="${left}%" x2="${left}%" y1="0" y2="${height}"/><text x="${left}%" dx="3" y="14">${timeText(ms)}</text></g>`;
  });
}

export const timeText = (ms: number): string => new Date(ms).toISOString().slice(11, 23);

/** Pairs the beginnings and ends of phases or commands. One without an end lasts until the end of the timeline. */
function barsOf(
  events: readonly ClusterEvent[],
  { endMs }: Span,
  kind: "phase" | "run",
): readonly Bar[] {
  const open = new Map<string, Bar>();
  const bars: Bar[] = [];
  for (const event of events) {
    if (event.kind !== kind) continue;
    const text =
      event.kind === "run"
        ? `${event.nodes.join(", ")}: ${event.command}`
        : `${event.title}${event.subject === undefined ? "" : ` ${event.subject}`}`;
    const ms = Date.parse(event.at);
    if (event.course === "begun") {
      open.set(text, { startMs: ms, endMs, style: "open", text });
      continue;
    }
    const begun = open.get(text);
    open.delete(text);
    const ended = event.kind === "run" ? `, status ${event.status ?? "none"}` : `: ${event.course}`;
    const style = event.course === "done" ? "good" : "bad";
    if (begun !== undefined) bars.push({ ...begun, endMs: ms, style, text: `${text}${ended}` });
  }
  return [...bars, ...open.values()];
}

/** What is known of a node's state and readiness, as bars from one event to the next. */
function statesOf(node: string, { events, span }: TimelineParts): readonly Bar[] {
  const changes = events.flatMap((event) => {
    const ms = Date.parse(event.at);
    if (event.kind === "node" && event.node === node)
      return [{ ms, style: event.state === "running" ? "running" : "off", text: event.state }];
    if (event.kind === "check" && event.node === node)
      return [{ ms, style: event.isReady ? "good" : "waiting", text: event.text }];
    return [];
  });
  return changes.slice(-mostBars).map(({ ms, style, text }, index, all) => ({
    startMs: ms,
    endMs: all[index + 1]?.ms ?? span.endMs,
    style,
    text: `${node}: ${text}`,
  }));
}

/**
 * Renders the report as one HTML file. Every text passes through `escaped`, and the page's policy
 * forbids any script, style or request but its own.
 */
import { createHash } from "node:crypto";
import { formatDuration, numbered } from "../../system/amounts.ts";
import type { LogLine } from "../logs/log-lines.ts";
import { inTurns, partsOf } from "../logs/merged-lines.ts";
import { nearTo, pageBytes } from "./select-lines.ts";
import { isError, signOf } from "./signs.ts";
import script from "./viewer.js" with { type: "text" };
import style from "./viewer.css" with { type: "text" };
import { type RunEvent, type TimelineParts, drawTimeline, timeText } from "./timeline.ts";

export interface ReportParts extends TimelineParts {
  readonly title: string;
  readonly isGood: boolean | undefined;
  /** What came of the run: several lines. */
  readonly result: string;
  /** The last lines that the command printed. */
  readonly output: readonly string[];
  readonly facts: readonly (readonly [name: string, value: string])[];
  readonly commands: readonly (readonly [purpose: string, line: string])[];
  /** In the order of their times; lines without a time come first. */
  readonly lines: readonly LogLine[];
  /** How many further lines the page has no place for. */
  readonly dropped: number;
  /** What could not be read. */
  readonly gaps: readonly string[];
}

const errorBytes = 1_500_000;
const mostNoticed = 40;
const mostFirst = 100;
const mostWindows = 6;
const mostFailed = 10;
const [mostRows, longestValue] = [60, 4000];

const escaped = (text: string): string => Bun.escapeHTML(text);
const shortened = (text: string): string =>
  escaped(text.length > longestValue ? `${text.slice(0, longestValue)}…` : text);
const hashOf = (text: string): string =>
  `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

export async function renderReport(parts: ReportParts, signal: AbortSignal): Promise<string> {
  const timeline = drawTimeline(parts);
  const findErrors = (part: ReportParts["lines"]) => part.filter(({ text }) => isError(text));
  const errors = new Set(await inTurns(partsOf(parts.lines), signal, findErrors));
  const findings = renderFindings(parts, errors);
  const around = renderPage(parts, { ...timeline, findings, html: "", gaps: parts.gaps });
  const { html, left } = renderLog(parts, errors, pageBytes - Buffer.byteLength(around));
  const because = "because this file has a limit";
  const gaps = [
    ...parts.gaps,
    ...(timeline.left > 0
      ? [`${numbered(timeline.left, "item")} of the timeline, ${because}`]
      : []),
    ...(left > 0 ? [`${numbered(left, "line")} of the logs, ${because}`] : []),
  ];
  return renderPage(parts, { ...timeline, findings, html, gaps });
}

interface PageParts extends Pick<ReturnType<typeof drawTimeline>, "svg" | "lanes"> {
  readonly findings: string;
  /** The log's. */
  readonly html: string;
  readonly gaps: readonly string[];
}

/** Those of a report's lines that `isError` holds for. */
type Errors = ReadonlySet<LogLine>;

function renderPage(parts: ReportParts, { svg, lanes, findings, html, gaps }: PageParts): string {
  const policy = `default-src 'none'; style-src ${hashOf(style)}; script-src ${hashOf(script)}; base-uri 'none'; form-action 'none'`;
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">
<title>${escaped(parts.title)}</title><style>${style}</style></head><body>
<h1 class="${parts.isGood === undefined ? "" : parts.isGood ? "good-text" : "bad-text"}">${escaped(parts.title)}</h1>
${parts.result === "" ? "" : `<pre>${shortened(parts.result)}</pre>`}
${findings}
<h2>Timeline</h2>
<div class="chart"><div class="names">${lanes.map((lane) => `<div>${escaped(lane)}</div>`).join("")}</div><div class="scroll">${svg}</div></div>
<p class="dim">Times are UTC by the clock of the computer that ran the commands. Shaded: a fault. Click a moment to see its lines; +, − and Ctrl with the wheel zoom, arrows move.</p>
${section("This run", table(parts.facts))}
${section("Again", table(parts.commands))}
${section("Left out", list(gaps))}
<h2>Log</h2>
<form id="filter"><button type="button" id="out" aria-label="Zoom out">−</button><span id="zoom">1×</span><button type="button" id="in" aria-label="Zoom in">+</button>
<label>Node <select name="node"><option value="">all</option></select></label> <label>Unit <select name="unit"><option value="">all</option></select></label>
<label>Text <input name="text" type="search"></label> <label><input name="errors" type="checkbox"> errors</label>
<label><input name="range" type="checkbox"> shown range</label> <button type="reset">Reset</button> <span id="count" role="status"></span></form>
<div id="log">${html}</div>
<script>${script}</script></body></html>
`;
}

const section = (title: string, content: string): string =>
  content === "" ? "" : `<h2>${title}</h2>\n${content}`;

const table = (rows: readonly (readonly [string, string])[]): string =>
  rows.length === 0
    ? ""
    : `<table>${rows
        .slice(-mostRows)
        .map(
          ([name, value]) =>
            `<tr><th>${shortened(name)}</th><td><code>${shortened(value)}</code></td></tr>`,
        )
        .join("\n")}</table>`;

const list = (items: readonly string[]): string =>
  items.length === 0
    ? ""
    : `<ul>${items
        .slice(-mostRows)
        .map((each) => `<li>${shortened(each)}</li>`)
        .join("\n")}</ul>`;

/** What was noticed, what nothing explains first, and the first error of each node. */
function renderFindings(parts: ReportParts, errors: Errors): string {
  const { noticed, cases, nodes, span, events, windows, output } = parts;
  const item = (line: LogLine, what: string, explanation?: string): string => {
    const time = line.ms === undefined ? "" : `${moment(line.ms, span)} `;
    const why =
      explanation === undefined ? "" : ` <span>(explained by ${escaped(explanation)})</span>`;
    return `<li class="${explanation === undefined ? "" : "explained"}">${time}<b>${escaped(line.node)}</b> ${escaped(what)}${why} <code>${escaped(line.unit === "" ? "" : `${line.unit}: `)}${escaped(line.text)}</code></li>`;
  };
  const found = noticed
    .slice(0, mostNoticed)
    .map(({ line, what, explanation }) => item(line, what, explanation));
  const runMs = beginningOf(
    events.findLast((event) => event.kind === "run"),
    events,
  );
  const firsts = firstErrors(errors, nodes.slice(0, mostFirst), runMs);
  const isEarlier = runMs > -Infinity && !firsts.some(({ ms }) => ms !== undefined && ms >= runMs);
  const before = isEarlier ? "; none since the command began" : "";
  const lists = (items: readonly string[]): string =>
    items.length === 0 ? "" : `<ul>${items.join("\n")}</ul>`;
  const failed = cases.filter(({ hasFailed }) => hasFailed);
  const tests = failed
    .slice(0, mostFailed)
    .map(
      ({ name, startMs, failure }) =>
        `<li>${moment(startMs, span)} ${escaped(name)} <code>${escaped(failure)}</code></li>`,
    );
  const of = failed.length > tests.length ? `, ${tests.length} of ${failed.length}` : "";
  const done = windows.slice(-mostWindows).map((window) => windowItem(window, span));
  const more = windows.length > done.length ? `, the last ${done.length}` : "";
  return [
    section("Noticed", lists(found)),
    section(`Failed tests${of}`, lists(tests)),
    section(`Faults and power changes${more}`, lists(done)),
    section("Last output", lastOutput(output)),
    section(`First error of each node${before}`, lists(firsts.map((line) => item(line, "")))),
  ].join("\n");
}

const lastOutput = (lines: readonly string[]): string =>
  lines.length === 0
    ? ""
    : `<div class="output" tabindex="0"><pre>${escaped(lines.join("\n"))}</pre></div>`;

/** When a command began of which this is an event. */
function beginningOf(run: RunEvent | undefined, events: ReportParts["events"]): number {
  const isIts = (event: ReportParts["events"][number]): boolean =>
    event.kind === "run" &&
    event.course === "begun" &&
    event.command === run?.command &&
    event.nodes.join() === run.nodes.join();
  return Date.parse(events.findLast(isIts)?.at ?? run?.at ?? "") || -Infinity;
}

const moment = (ms: number, { startMs }: ReportParts["span"]): string =>
  `<a href="#log" data-t="${Math.floor(ms - startMs)}">${timeText(ms, startMs)}</a>`;

/** What was done to nodes is often the cause, also where no line of a log says so. */
function windowItem(
  { kind, text, nodes, startMs, endMs }: ReportParts["windows"][number],
  span: ReportParts["span"],
): string {
  const where = kind === "power" ? ` on ${nodes.join(", ")}` : "";
  const length = endMs > startMs ? `, ${formatDuration(endMs - startMs)}` : "";
  return `<li>${moment(startMs, span)}${length} ${shortened(text + where)}</li>`;
}

/** The first error of each node since the command began. If no node has any: before that, or without a time. */
function firstErrors(errors: Errors, nodes: readonly string[], runMs: number): readonly LogLine[] {
  const first = new Map<string, { readonly line: LogLine; readonly rank: number }>();
  for (const line of errors) {
    const rank = line.ms === undefined ? 2 : line.ms < runMs ? 1 : 0;
    if (rank < (first.get(line.node)?.rank ?? Infinity)) first.set(line.node, { line, rank });
  }
  const isSince = [...first.values()].some(({ rank }) => rank === 0);
  return nodes.flatMap((node) => {
    const found = first.get(node);
    return found === undefined || (isSince && found.rank > 0) ? [] : found.line;
  });
}

/**
 * Renders as many lines as fit: what was noticed and errors first, then what came near something
 * noticed, then the newest of each node, and then of all.
 */
function renderLog(
  { lines, dropped, noticed, span, nodes }: ReportParts,
  errors: Errors,
  logBytes: number,
): { html: string; left: number } {
  const rendered: (string | undefined)[] = Array.from({ length: lines.length });
  const used = { bytes: 0 };
  const take = (index: number, most: number): number => {
    const line = lines[index];
    if (line === undefined || used.bytes >= most || rendered[index] !== undefined) return 0;
    const text = renderLine(line, span.startMs, errors.has(line) || signOf(line) !== undefined);
    const bytes = Buffer.byteLength(text) + 1;
    // The rest is hardly ever enough for another line, and a million may follow.
    if (used.bytes + bytes > most) {
      used.bytes = most;
      return 0;
    }
    rendered[index] = text;
    used.bytes += bytes;
    return bytes;
  };
  const important = new Set(noticed.map(({ line }) => line));
  for (const [index, line] of lines.entries()) if (important.has(line)) take(index, errorBytes);
  for (const [index, line] of lines.entries()) if (errors.has(line)) take(index, errorBytes);
  const isNear = nearTo(noticed.flatMap(({ line }) => line.ms ?? []));
  for (const [index, { ms }] of lines.entries())
    if (isNear(ms)) take(index, (errorBytes + logBytes) / 2);
  const shares = new Map(
    nodes.map((node) => [node, (logBytes - used.bytes) / Math.max(1, nodes.length)]),
  );
  for (let index = lines.length - 1; index >= 0; index -= 1) {
    const node = lines[index]?.node ?? "";
    const share = shares.get(node) ?? 0;
    if (share > 0) shares.set(node, share - take(index, logBytes));
  }
  for (let index = lines.length - 1; index >= 0; index -= 1) take(index, logBytes);
  const shown = rendered.filter((text) => text !== undefined);
  return { html: shown.join("\n"), left: dropped + lines.length - shown.length };
}

function renderLine(line: LogLine, startMs: number, isBad: boolean): string {
  const { ms, node, unit, text } = line;
  const time = ms === undefined ? "" : `<time>${timeText(ms, startMs)}</time> `;
  const offset = ms === undefined ? "" : ` data-t="${ms - startMs}"`;
  return `<p${offset}${isBad ? ' class="e"' : ""}>${time}<b>${escaped(node)}</b> <i>${escaped(unit)}</i> ${escaped(text)}</p>`;
}

import { plainLine } from "../../system/printable.ts";

export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Writes the text unchanged. The caller makes outside text printable first. */
  write(text: string): void;
}

/** A line to draw. `text` is cut so that the line fits the width; `paint` colours the mark. */
export interface LiveLine {
  readonly mark: string;
  readonly paint: (text: string) => string;
  readonly text: string;
  /** Stands behind the text, and is never cut. */
  readonly end?: string;
}

/** Lines at the bottom of the screen that are redrawn. Other output goes above them. */
export class LiveArea {
  readonly #screen: Screen;
  readonly #drawn = { lines: 0, text: "" };

  constructor(screen: Screen) {
    this.#screen = screen;
  }

  draw(lines: readonly LiveLine[]): void {
    const text = this.#cut(lines);
    if (text === this.#drawn.text) return;
    this.#screen.write(this.#erasure() + text);
    this.#remember(text);
  }

  /** Writes permanent lines, and redraws the area below them. */
  writeAbove(text: string): void {
    this.#screen.write(`${this.#erasure()}${text}${this.#drawn.text}`);
  }

  clear(): void {
    if (this.#drawn.lines > 0) this.#screen.write(this.#erasure());
    this.#remember("");
  }

  #remember(text: string): void {
    this.#drawn.text = text;
    this.#drawn.lines = text.split("\n").length - 1;
  }

  #erasure(): string {
    return this.#drawn.lines === 0 ? "" : `\x1b[${this.#drawn.lines}A\r\x1b[J`;
  }

  #cut(lines: readonly LiveLine[]): string {
    // A line that fills the last column wraps on some terminals. One line above the area must stay visible.
    const width = Math.max(10, this.#screen.columns - 1);
    const most = Math.max(1, this.#screen.rows - 2);
    const shown = lines.slice(-most);
    return shown
      .map(({ mark, paint, text, end = "" }) => {
        const room = Math.max(1, width - mark.length - 1 - end.length);
        return `${paint(mark)} ${fit(text, room)}${end}\n`;
      })
      .join("");
  }
}

/** Cuts a text to a number of terminal columns, in one line. */
export function fit(text: string, width: number): string {
  const clean = plainLine(text);
  if (Bun.stringWidth(clean) <= width) return clean;
  const shown: string[] = [];
  const used = { columns: 1 };
  for (const character of clean) {
    used.columns += Bun.stringWidth(character);
    if (used.columns > width) break;
    shown.push(character);
  }
  return `${shown.join("")}…`;
}

export interface StepEntry {
  readonly title: string;
  readonly subject: string | undefined;
  readonly startedMs: number;
  /** The text shown beside the step. */
  text: string;
  endedMs: number | undefined;
}

/** All steps with one title, as a single line shows them. */
export interface TitleSummary extends Readonly<Pick<TitleRecord, "ended" | "failed" | "outcome">> {
  readonly title: string;
  readonly active: readonly StepEntry[];
  /** Milliseconds from the first start to the last end, or to now while a step is active. */
  readonly ms: number;
}

interface TitleRecord {
  readonly startedMs: number;
  lastEndMs: number;
  ended: number;
  failed: number;
  /** The outcome of the last step without a subject, or an empty text. */
  outcome: string;
  readonly active: Set<StepEntry>;
}

export class StepTable {
  readonly #titles = new Map<string, TitleRecord>();

  /** Also returns whether this is the first step of its title. */
  begin(
    title: string,
    subject: string | undefined,
    nowMs: number,
  ): { entry: StepEntry; isFirst: boolean } {
    const known = this.#titles.get(title);
    const record = known ?? {
      startedMs: nowMs,
      lastEndMs: nowMs,
      ended: 0,
      failed: 0,
      outcome: "",
      active: new Set<StepEntry>(),
    };
    this.#titles.set(title, record);
    const entry: StepEntry = { title, subject, startedMs: nowMs, text: "", endedMs: undefined };
    record.active.add(entry);
    return { entry, isFirst: known === undefined };
  }

  end(
    entry: StepEntry,
    outcome: { readonly text: string; readonly hasFailed: boolean },
    nowMs: number,
  ): void {
    const record = this.#titles.get(entry.title);
    if (record === undefined || !record.active.delete(entry)) return;
    entry.endedMs = nowMs;
    record.lastEndMs = nowMs;
    record.ended += 1;
    if (outcome.hasFailed) record.failed += 1;
    if (entry.subject === undefined) record.outcome = outcome.text;
  }

  forgetEnded(): void {
    for (const [title, record] of this.#titles)
      if (record.active.size === 0) this.#titles.delete(title);
  }

  get isIdle(): boolean {
    return [...this.#titles.values()].every((record) => record.active.size === 0);
  }

  /** In order of the first start. `nowMs` is the end time for titles that have an active step. */
  summaries(nowMs: number): readonly TitleSummary[] {
    return [...this.#titles].map(([title, record]) => ({
      title,
      active: [...record.active],
      ended: record.ended,
      failed: record.failed,
      outcome: record.outcome,
      ms: (record.active.size > 0 ? nowMs : record.lastEndMs) - record.startedMs,
    }));
  }
}

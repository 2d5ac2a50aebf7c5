/** The current state of one step of work. */
export interface StepEntry {
  readonly title: string;
  readonly subject: string | undefined;
  readonly startedMs: number;
  /** The text shown beside the step. */
  text: string;
  endedMs: number | undefined;
}

/** All steps with one title, as a single line shows them. */
export interface TitleSummary {
  readonly title: string;
  readonly active: readonly StepEntry[];
  readonly ended: number;
  readonly failed: number;
  /** The outcome of the last step without a subject, or an empty text. */
  readonly outcome: string;
  /** Milliseconds from the first start to the last end, or to now while a step is active. */
  readonly ms: number;
}

interface TitleRecord {
  readonly startedMs: number;
  lastEndMs: number;
  ended: number;
  failed: number;
  outcome: string;
  readonly active: Set<StepEntry>;
}

/** All steps, past and present, and how long they took. */
export class StepTable {
  readonly #titles = new Map<string, TitleRecord>();

  /** Also returns whether this is the first step of its title. */
  begin(title: string, subject: string | undefined, nowMs: number): { entry: StepEntry; isFirst: boolean } {
    const known = this.#titles.get(title);
    const record = known ?? newRecord(nowMs);
    this.#titles.set(title, record);
    const entry: StepEntry = { title, subject, startedMs: nowMs, text: "", endedMs: undefined };
    record.active.add(entry);
    return { entry, isFirst: known === undefined };
  }

  end(entry: StepEntry, outcome: { readonly text: string; readonly hasFailed: boolean }, nowMs: number): void {
    const record = this.#titles.get(entry.title);
    if (record === undefined || !record.active.delete(entry)) return;
    entry.endedMs = nowMs;
    record.lastEndMs = nowMs;
    record.ended += 1;
    if (outcome.hasFailed) record.failed += 1;
    if (entry.subject === undefined) record.outcome = outcome.text;
  }

  /** Forgets titles without an active step. */
  forgetEnded(): void {
    for (const [title, record] of this.#titles) if (record.active.size === 0) this.#titles.delete(title);
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

function newRecord(nowMs: number): TitleRecord {
  return { startedMs: nowMs, lastEndMs: nowMs, ended: 0, failed: 0, outcome: "", active: new Set() };
}

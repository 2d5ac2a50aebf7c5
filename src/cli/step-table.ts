/** One step of work as it stands. */
export interface StepEntry {
  readonly title: string;
  readonly subject: string | undefined;
  readonly startedMs: number;
  /** What is shown beside the step. */
  text: string;
  endedMs: number | undefined;
}

/** All steps of one title, as one line shows them. */
export interface TitleSummary {
  readonly title: string;
  readonly active: readonly StepEntry[];
  readonly ended: number;
  readonly failed: number;
  /** From the first start to the last end, or to now while one is active. */
  readonly ms: number;
}

interface TitleRecord {
  readonly startedMs: number;
  lastEndMs: number;
  ended: number;
  failed: number;
  readonly active: Set<StepEntry>;
}

/** What steps there are and were, and how long they took. */
export class StepTable {
  readonly #titles = new Map<string, TitleRecord>();

  /** Tells also whether this is the first step of its title. */
  begin(title: string, subject: string | undefined, nowMs: number): { entry: StepEntry; isFirst: boolean } {
    const known = this.#titles.get(title);
    const record = known ?? { startedMs: nowMs, lastEndMs: nowMs, ended: 0, failed: 0, active: new Set<StepEntry>() };
    if (known === undefined) this.#titles.set(title, record);
    const entry: StepEntry = { title, subject, startedMs: nowMs, text: "", endedMs: undefined };
    record.active.add(entry);
    return { entry, isFirst: known === undefined };
  }

  end(entry: StepEntry, hasFailed: boolean, nowMs: number): void {
    const record = this.#titles.get(entry.title);
    if (record === undefined || !record.active.delete(entry)) return;
    entry.endedMs = nowMs;
    record.lastEndMs = nowMs;
    record.ended += 1;
    if (hasFailed) record.failed += 1;
  }

  get isIdle(): boolean {
    return [...this.#titles.values()].every((record) => record.active.size === 0);
  }

  /** In order of the first start; `nowMs` counts for those that have an active step. */
  summaries(nowMs: number): readonly TitleSummary[] {
    return [...this.#titles].map(([title, record]) => ({
      title,
      active: [...record.active],
      ended: record.ended,
      failed: record.failed,
      ms: (record.active.size > 0 ? nowMs : record.lastEndMs) - record.startedMs,
    }));
  }
}

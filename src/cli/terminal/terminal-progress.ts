import { messageOf } from "../../errors.ts";
import type { Masker } from "../../system/masker.ts";
import { messageBlock, plainLine, shownText } from "../../system/printable.ts";
import {
  type Clock,
  type OnStep,
  type Progress,
  type Step,
  StepChanges,
  passedMs,
} from "../../system/runtime.ts";
import type { LogFile } from "../log-file.ts";
import { wrap } from "../layout.ts";
import type { NameFlags } from "../options/problems.ts";
import { formatDuration } from "../../system/amounts.ts";
import {
  LiveArea,
  type LiveLine,
  type Screen,
  type StepEntry,
  StepTable,
  type TitleSummary,
} from "./live-area.ts";
import type { Colours } from "./colours.ts";

const framesPerSecond = 10;
/** Where nothing is drawn, work that goes on for so long without a line gets one. */
const silentMs = 60_000;
/** Shorter work is never drawn, because nobody could read it. */
const drawnAfterMs = 300;
const spinner = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const subjectsShown = 4;

interface Parts {
  readonly screen: Screen;
  readonly isLive: boolean;
  readonly verbosity: number;
  readonly clock: Clock;
  readonly colours: Colours;
  readonly masker: Masker;
  readonly nameFlags: NameFlags;
  readonly log: LogFile;
  /** Whether the user interrupted the work. If so, a step without an end was stopped, not failed. */
  readonly isInterrupted: () => boolean;
}

/**
 * Progress on stderr: redrawn live on a terminal, and otherwise a line per change of state.
 * Everything also goes to the log.
 */
export class TerminalProgress implements Progress {
  readonly #parts: Parts;
  readonly #all = new StepTable();
  readonly #changes = new StepChanges();
  readonly #live: LiveArea | undefined;
  /** The steps on the screen; cleared whenever nothing is in progress. */
  readonly #shown = new StepTable();
  readonly #state = {
    shownSinceMs: 0,
    isDrawn: false,
    /** Whether anything was ever drawn: from then on, short work is shown too. */
    wasDrawn: false,
    waiting: "",
    frame: 0,
    timer: undefined as ReturnType<typeof setInterval> | undefined,
    isOver: false,
    lastLineMs: 0,
  };

  constructor(parts: Parts) {
    this.#parts = parts;
    this.#live = parts.isLive ? new LiveArea(parts.screen) : undefined;
  }

  start(title: string, subject?: string): Step {
    const nowMs = passedMs(this.#parts.clock);
    const { entry, isFirst } = this.#all.begin(title, subject, nowMs);
    this.#changes.add({ title, subject, course: "begun", atMs: this.#parts.clock.now() });
    if (this.#shown.isIdle && !this.#state.isDrawn) this.#state.shownSinceMs = nowMs;
    const shown = this.#shown.begin(title, subject, nowMs).entry;
    const isLineDue = this.#parts.verbosity > 0 || (isFirst && this.#live === undefined);
    this.#report(
      `${this.#parts.verbosity > 0 ? nameOf(entry) : title} …`,
      isLineDue,
      nameOf(entry),
    );
    this.#startDrawing();
    const end = (text: string, hasFailed: boolean): void =>
      this.#end([entry, shown], text, hasFailed);
    return {
      update: (text) => {
        shown.text = plainLine(this.#show(text));
      },
      done: (text = "done") => end(text, false),
      [Symbol.dispose]: () => end(this.#parts.isInterrupted() ? "stopped" : "failed", true),
    };
  }

  waiting(text: string): void {
    const masked = this.#show(text);
    const before = this.#state.waiting;
    if (masked === before) return;
    if (this.#shown.isIdle && this.#state.waiting === "")
      this.#state.shownSinceMs = passedMs(this.#parts.clock);
    this.#state.waiting = masked;
    const known = before.split("\n").map((line) => line.trim());
    const news = masked.split("\n").filter((line) => !known.includes(line.trim()));
    if (news.length > 0 && masked !== "") this.#report(news.join("\n"), this.#live === undefined);
    if (masked !== "") this.#startDrawing();
    else if (this.#shown.isIdle) this.settle();
  }

  note(text: string): void {
    this.#report(this.#parts.nameFlags(text), true);
  }

  warn(text: string): void {
    const warning = `Warning: ${this.#parts.nameFlags(text)}`;
    this.#report(warning, true, warning, this.#parts.colours.yellow);
  }

  detail(level: 1 | 2 | 3, text: string): void {
    this.#report(text, this.#parts.verbosity >= level, text, this.#parts.colours.dim);
  }

  hide(secret: string): void {
    this.#parts.masker.hide(secret);
  }

  mask(text: string): string {
    return this.#parts.masker.text(text);
  }

  logTo(path: string, onStep?: OnStep): void {
    this.#changes.sendTo(onStep);
    try {
      this.#parts.log.open(path);
    } catch (error) {
      this.warn(`cannot write the log: ${messageOf(error)}`);
    }
  }

  readonly closeLog = (): void => this.#parts.log.close();

  timings(): readonly { readonly title: string; readonly ms: number }[] {
    return this.#all.summaries(passedMs(this.#parts.clock)).map(({ title, ms }) => ({ title, ms }));
  }

  /**
   * Hands the terminal to another program. The drawn lines become permanent, and nothing more is
   * drawn until a step begins.
   */
  settle(): void {
    clearInterval(this.#state.timer);
    this.#state.timer = undefined;
    this.#live?.clear();
    const nowMs = passedMs(this.#parts.clock);
    this.#state.waiting = "";
    const isDue = this.#live === undefined ? this.#parts.verbosity === 0 : this.#state.wasDrawn;
    if (!isDue) return;
    const ended = this.#shown.summaries(nowMs).filter((summary) => summary.active.length === 0);
    for (const summary of ended) this.#settleTitle(summary);
    this.#state.isDrawn = false;
    this.#shown.forgetEnded();
  }

  /**
   * Prints nothing from now on, so that the error stays the last text on stderr. Work that is still
   * ending writes only to the log.
   */
  finish(): void {
    this.settle();
    this.#state.isOver = true;
  }

  #end(entries: readonly [StepEntry, StepEntry], text: string, hasFailed: boolean): void {
    const [entry, shown] = entries;
    if (entry.endedMs !== undefined) return;
    const nowMs = passedMs(this.#parts.clock);
    this.#all.end(entry, { text, hasFailed }, nowMs);
    const course = hasFailed ? "failed" : "done";
    this.#changes.add({
      title: entry.title,
      subject: entry.subject,
      course,
      text,
      atMs: this.#parts.clock.now(),
    });
    this.#shown.end(shown, { text: plainLine(this.#show(text)), hasFailed }, nowMs);
    const { verbosity, colours } = this.#parts;
    const took = ` (${formatDuration(nowMs - entry.startedMs)})`;
    const isAlone = entry.subject === undefined;
    // On a live screen, the line of a step without a subject already shows that it has failed.
    const isFailureDue =
      hasFailed && !(isAlone && this.#live !== undefined && this.#state.wasDrawn);
    const isLineDue = verbosity > 0 || isFailureDue || (this.#live === undefined && isAlone);
    const line = `${nameOf(entry)}: ${text}`;
    this.#report(line + took, isLineDue, line + took, hasFailed ? colours.red : undefined);
    if (this.#shown.isIdle && this.#state.waiting === "") this.settle();
  }

  /** Writes to the log, and to the screen if the line is due there. */
  #report(
    text: string,
    isLineDue: boolean,
    logged: string = text,
    paint?: (line: string) => string,
  ): void {
    const { log, screen } = this.#parts;
    if (isLineDue || log.takesDetails) log.write(this.#show(logged));
    if (!isLineDue || this.#state.isOver) return;
    this.#state.lastLineMs = passedMs(this.#parts.clock);
    const masked = this.#show(text);
    const wrapped = wrap(masked, screen.columns, 2).join("\n");
    const line = `${paint === undefined ? wrapped : paint(wrapped)}\n`;
    if (this.#live === undefined) screen.write(line);
    else this.#live.writeAbove(line);
  }

  /**
   * Prepares a text for the screen and the log: masks secrets, makes it printable, and indents all
   * lines but the first.
   */
  #show(text: string): string {
    return messageBlock(shownText(text, (given) => this.#parts.masker.text(given)));
  }

  #startDrawing(): void {
    if (this.#state.timer !== undefined || this.#state.isOver) return;
    this.#state.timer =
      this.#live === undefined
        ? setInterval(() => this.#breakSilence(), silentMs)
        : setInterval(() => this.#draw(), 1000 / framesPerSecond);
    this.#state.timer.unref();
  }

  /** Says what is still going on, with the last text of the work. */
  #breakSilence(): void {
    const nowMs = passedMs(this.#parts.clock);
    if (nowMs - this.#state.lastLineMs < silentMs / 2) return;
    const active = this.#shown.summaries(nowMs).filter((each) => each.active.length > 0);
    for (const summary of active) {
      const { names, text: last } = subjectsOf(summary);
      const text = [names, last].filter((part) => part !== "").join(", ");
      const what = `${summary.title}: still at work after ${formatDuration(summary.ms)}`;
      this.#report(text === "" ? what : `${what} (${text})`, true);
    }
    const [reason = ""] = this.#state.waiting.split("\n");
    if (active.length === 0 && reason !== "") this.#report(`Still waiting: ${reason}`, true);
  }

  #draw(): void {
    const nowMs = passedMs(this.#parts.clock);
    if (!this.#state.isDrawn && nowMs - this.#state.shownSinceMs < drawnAfterMs) return;
    this.#state.isDrawn = true;
    this.#state.wasDrawn = true;
    this.#state.frame += 1;
    const lines = this.#shown.summaries(nowMs).map((summary) => this.#line(summary));
    const { waiting: text } = this.#state;
    // The live area cuts lines, but a reason is shown whole.
    const waiting = wrap(text, this.#parts.screen.columns - 3, 2);
    const mark = this.#shown.isIdle ? this.#spinner() : " ";
    const indentOf = (line: string): string => line.slice(0, line.length - line.trimStart().length);
    const { cyan: paint } = this.#parts.colours;
    this.#live?.draw([
      ...lines,
      ...waiting.map((line) => ({ mark: indentOf(line) || mark, paint, text: line })),
    ]);
  }

  #line(summary: TitleSummary): LiveLine {
    const { colours } = this.#parts;
    const took = formatDuration(summary.ms);
    if (summary.active.length === 0) {
      const isGood = summary.failed === 0;
      const outcome =
        summary.outcome === "" || summary.outcome === "done" ? "" : `: ${summary.outcome}`;
      const text = `${summary.title}${outcome} (${took})`;
      return { mark: isGood ? "✔" : "✖", paint: isGood ? colours.green : colours.red, text };
    }
    const end = ` (${took})`;
    const width = this.#parts.screen.columns - end.length - 3;
    const text = headline(summary, width);
    return { mark: this.#spinner(), paint: colours.cyan, text, end };
  }

  /**
   * Shows how long all steps of a title took. Where nothing is drawn, a step without a subject has
   * already printed its own time.
   */
  #settleTitle(summary: TitleSummary): void {
    const { mark, paint, text } = this.#line(summary);
    if (this.#live !== undefined) return this.#parts.screen.write(`${paint(mark)} ${text}\n`);
    const { title, ended, failed, outcome, ms } = summary;
    if (outcome !== "" || failed > 0) return;
    const what = ended === 1 ? "done" : `${ended} done`;
    if (!this.#state.isOver)
      this.#parts.screen.write(`${title}: ${what} (${formatDuration(ms)})\n`);
  }

  #spinner(): string {
    return spinner[this.#state.frame % spinner.length] ?? "";
  }
}

function nameOf(entry: StepEntry): string {
  return entry.subject === undefined ? entry.title : `${entry.subject}: ${entry.title}`;
}

/** A title with its subjects and its last text; without the names where they leave no room for the text. */
function headline(summary: TitleSummary, width: number): string {
  const { amount, names, text } = subjectsOf(summary);
  const join = (...parts: readonly string[]): string =>
    [summary.title, ...parts, text].filter((part) => part !== "").join(" ");
  const whole = join(names);
  return text === "" || Bun.stringWidth(whole) <= width ? whole : join(amount);
}

/**
 * The amount, such as `2 of 5:`, which is empty for a single subject; the amount and the subjects being worked on, such
 * as `2 of 5: agent_0, agent_1`; the last text of one of them, such as `42 of 310 MB`.
 */
function subjectsOf({ active, ended }: TitleSummary) {
  const named = active.flatMap((entry) => entry.subject ?? []);
  const more = named.length > subjectsShown ? ` and ${named.length - subjectsShown} more` : "";
  const all = ended + active.length;
  const amount = all > 1 ? `${ended} of ${all}:` : "";
  const names = `${amount} ${named.slice(0, subjectsShown).join(", ")}${more}`.trim();
  const text = active.findLast((entry) => entry.text !== "")?.text ?? "";
  return { amount, names, text };
}

import { LogFile } from "../../cli/log-file.ts";
import { messageOf } from "../../errors.ts";
import { messageBlock, shownText } from "../../system/printable.ts";
import {
  type Clock,
  type OnStep,
  type Progress,
  type Step,
  StepChanges,
} from "../../system/runtime.ts";

/**
 * Texts that say what each shard waits for, by the shard's name. All shards share the map, because
 * the screen shows one text.
 */
export type Waits = Map<string, string>;

/** Reports what one shard does, with its name before each text. Its log is in the folder of its own cluster. */
export class ShardProgress implements Progress {
  readonly log: LogFile;
  readonly #all: Progress;
  readonly #name: string;
  readonly #waits: Waits;
  readonly #clock: Clock;
  readonly #changes = new StepChanges();

  constructor(
    all: Progress,
    { name, waits, clock }: { readonly name: string; readonly waits: Waits; readonly clock: Clock },
  ) {
    this.#all = all;
    this.#name = name;
    this.#waits = waits;
    this.#clock = clock;
    this.log = new LogFile(clock);
  }

  start(title: string, subject?: string): Step {
    const step = this.#all.start(
      title,
      subject === undefined ? this.#name : `${this.#name} ${subject}`,
    );
    const what = subject === undefined ? title : `${subject}: ${title}`;
    this.#write(`${what} …`);
    const change = (course: "begun" | "done" | "failed"): void =>
      this.#changes.add({ title, subject, course, atMs: this.#clock.now() });
    change("begun");
    const state = { isOver: false };
    const end = (text: string, course: "done" | "failed"): void => {
      if (state.isOver) return;
      this.#write(`${what}: ${text}`);
      change(course);
      state.isOver = true;
    };
    return {
      update: (text) => step.update(text),
      done: (text = "done") => {
        step.done(text);
        end(text, "done");
      },
      [Symbol.dispose]: () => {
        step[Symbol.dispose]();
        end("failed", "failed");
      },
    };
  }

  waiting(text: string): void {
    if (text === (this.#waits.get(this.#name) ?? "")) return;
    this.#waits.set(this.#name, text);
    if (text !== "") this.#write(text);
    const shown = [...this.#waits]
      .filter(([, each]) => each !== "")
      .map(([name, each]) => `${name}: ${each}`);
    this.#all.waiting(shown.join("\n"));
  }

  note(text: string): void {
    this.#write(text);
    this.#all.note(`${this.#name}: ${text}`);
  }

  warn(text: string): void {
    this.#write(`Warning: ${text}`);
    this.#all.warn(`${this.#name}: ${text}`);
  }

  detail(level: 1 | 2 | 3, text: string): void {
    if (this.log.takesDetails) this.#write(text);
    this.#all.detail(level, `${this.#name}: ${text}`);
  }

  hide(secret: string): void {
    this.#all.hide(secret);
  }

  mask(text: string): string {
    return this.#all.mask(text);
  }

  logTo(path: string, onStep?: OnStep): void {
    this.#changes.sendTo(onStep);
    try {
      this.log.open(path);
    } catch (error) {
      this.#all.warn(`${this.#name}: cannot write the log: ${messageOf(error)}`);
    }
  }

  readonly closeLog = (): void => this.log.close();

  timings(): ReturnType<Progress["timings"]> {
    return this.#all.timings();
  }

  #write(text: string): void {
    this.log.write(messageBlock(shownText(text, (given) => this.#all.mask(given))));
  }
}

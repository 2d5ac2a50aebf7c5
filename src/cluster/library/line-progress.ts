import { Masker } from "../../system/masker.ts";
import { messageBlock, shownText } from "../../system/printable.ts";
import { libraryWords } from "./library-words.ts";
import type { Progress, Step } from "../../system/runtime.ts";

/** Reports progress to a function, one printable line at a time and without secrets: the library has no terminal of its own. */
export class LineProgress implements Progress {
  readonly #masker = new Masker();
  readonly #onLine: (line: string) => void;
  readonly #waiting = { text: "" };

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  start(title: string, subject?: string): Step {
    const name = subject === undefined ? title : `${subject}: ${title}`;
    const state = { hasEnded: false };
    this.note(`${name} …`);
    const end = (outcome: string): void => {
      if (!state.hasEnded) this.note(`${name}: ${outcome}`);
      state.hasEnded = true;
    };
    return { update: () => {}, done: (text = "done") => end(text), [Symbol.dispose]: () => end("failed") };
  }

  waiting(text: string): void {
    if (text !== this.#waiting.text && text !== "") this.note(text);
    this.#waiting.text = text;
  }

  note(text: string): void {
    const shown = messageBlock(shownText(libraryWords(text), (given) => this.mask(given)));
    for (const line of shown.split("\n")) this.#onLine(line);
  }

  warn(text: string): void {
    this.note(`Warning: ${text}`);
  }

  detail(): void {}

  hide(secret: string): void {
    this.#masker.hide(secret);
  }

  mask(text: string): string {
    return this.#masker.text(text);
  }

  logTo(): void {}

  timings(): readonly [] {
    return [];
  }
}

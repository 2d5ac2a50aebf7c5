import { plainLine } from "../../system/printable.ts";

/** The part of a terminal that progress needs. */
export interface Screen {
  readonly columns: number;
  readonly rows: number;
  /** Writes the text unchanged. The caller makes foreign text printable first. */
  write(text: string): void;
}

/** A line to draw. `mark` and `text` together are cut to the width; `paint` colours the mark. */
export interface LiveLine {
  readonly mark: string;
  readonly paint: (text: string) => string;
  readonly text: string;
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

  /** Removes the area from the screen. */
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
    return shown.map((line) => `${line.paint(line.mark)} ${fit(line.text, width - line.mark.length - 1)}\n`).join("");
  }
}

/** Cuts a text to a number of terminal columns, in one line. */
export function fit(text: string, width: number): string {
  const clean = plainLine(text);
  if (Bun.stringWidth(clean) <= width) return clean;
  const kept: string[] = [];
  const used = { columns: 1 };
  for (const character of clean) {
    used.columns += Bun.stringWidth(character);
    if (used.columns > width) break;
    kept.push(character);
  }
  return `${kept.join("")}…`;
}

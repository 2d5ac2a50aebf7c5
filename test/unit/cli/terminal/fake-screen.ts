import { expect } from "bun:test";
import type { Screen } from "../../../../src/cli/terminal/live-area.ts";

/** Shows what a terminal would show. It understands only the sequence that erases the last lines. */
export class FakeScreen implements Screen {
  readonly columns: number;
  readonly rows: number;
  readonly lines: string[] = [];
  /** Every text, as it was written. */
  readonly written: string[] = [];

  constructor({
    columns = 20,
    rows = 5,
  }: { readonly columns?: number; readonly rows?: number } = {}) {
    this.columns = columns;
    this.rows = rows;
  }

  write(text: string): void {
    this.written.push(text);
    const [before = "", after] = text.split("A\r\x1b[J");
    const rest = after ?? before;
    // A terminal moves up by one line if it is asked for none.
    if (after !== undefined) this.lines.length -= Math.max(1, Number(before.replace("\x1b[", "")));
    expect(rest).not.toContain("\x1b");
    this.lines.push(...rest.split("\n").slice(0, -1));
  }
}

/** A run of characters of one style: `plain`, `bold`, `dim`, or `c` and the number of a colour. */
export interface Run {
  readonly style: string;
  readonly text: string;
}

const escape = "\u001b[";

/** A terminal without a bottom edge. It knows what the programs use: colours, bold, cursor up, and erasing what is below. */
export class Screen {
  readonly #columns: number;
  readonly #rows: Run[][] = [];
  readonly #state = { row: 0, style: "plain" };

  constructor(columns: number) {
    this.#columns = columns;
  }

  /** Without empty rows at the end. */
  get rows(): readonly (readonly Run[])[] {
    const last = this.#rows.findLastIndex((row) => row.length > 0);
    return this.#rows.slice(0, last + 1).map((row) => [...row]);
  }

  write(text: string): void {
    const [first = "", ...others] = text.split(escape);
    this.#print(first);
    for (const part of others) {
      const [codes = "", command = ""] = /^([0-9;?]*)([A-Za-z])/.exec(part)?.slice(1) ?? [];
      this.#obey(command, codes);
      this.#print(part.slice(codes.length + command.length));
    }
  }

  #obey(command: string, codes: string): void {
    const state = this.#state;
    if (command === "A") state.row = Math.max(0, state.row - Number(codes || 1));
    if (command === "J") this.#rows.length = Math.min(this.#rows.length, state.row);
    if (command === "m") state.style = styleOf(codes) ?? state.style;
  }

  #print(text: string): void {
    for (const [index, line] of text.replaceAll("\r", "").split("\n").entries()) {
      if (index > 0) this.#state.row += 1;
      if (line !== "") this.#put(line);
    }
  }

  #put(text: string): void {
    const { row: index, style } = this.#state;
    while (this.#rows.length <= index) this.#rows.push([]);
    const row = this.#rows[index] ?? [];
    const free = this.#columns - row.reduce((sum, run) => sum + run.text.length, 0);
    if (free > 0) row.push({ style, text: text.slice(0, free) });
    if (text.length <= free) return;
    this.#state.row += 1;
    this.#put(text.slice(free));
  }
}

function styleOf(codes: string): string | undefined {
  if (codes === "1") return "bold";
  if (codes === "2") return "dim";
  if (/^(9[0-7]|3[0-7])$/.test(codes)) return `c${codes}`;
  return /^(|0|22|39)$/.test(codes) ? "plain" : undefined;
}

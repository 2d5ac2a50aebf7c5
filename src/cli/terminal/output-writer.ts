import { mapOutside, mapTexts } from "../../outside-text.ts";
import {
  maskedPrintable,
  printableJson,
  shownText,
  withoutCommands,
} from "../../system/printable.ts";
import type { Output, Result, Source } from "../command.ts";
import type { Colours } from "./colours.ts";

interface Parts {
  readonly format: string;
  readonly mask: (text: string) => string;
  readonly write: (text: string) => void;
  /** Writes a text with colours, which must be printable otherwise. */
  readonly writePainted: (text: string) => void;
  /** Writes a painted text, which must be printable. Returns a promise if the reader is slow. */
  readonly paint: (stream: "stdout" | "stderr", text: string) => void | Promise<void>;
  readonly isClosed: () => boolean;
  readonly colours: Readonly<Record<"stdout" | "stderr", Colours>>;
}

export class OutputWriter implements Output {
  readonly #parts: Parts;
  readonly #given: Result[] = [];
  #hasFinished = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get format(): string {
    return this.#parts.format;
  }

  get isClosed(): boolean {
    return this.#parts.isClosed();
  }

  result(result: Result): void {
    if (this.#given.length > 0) throw new Error("A command wrote its result twice");
    this.#given.push(result);
    if (result.isAtOnce === true) this.finish(undefined);
    const text = withoutCommands(shownText(result.text, this.#parts.mask));
    if (this.format === "json" || text === "") return;
    const { paint } = result;
    if (paint === undefined) {
      this.#parts.write(text.endsWith("\n") ? text : `${text}\n`);
      return;
    }
    const painted = text.split("\n").map((line) => paint(line, this.#parts.colours.stdout));
    this.#parts.writePainted(`${painted.join("\n")}\n`);
  }

  line(
    stream: "stdout" | "stderr",
    source: Source | undefined,
    line: string,
  ): void | Promise<void> {
    if (this.format === "json") return undefined;
    const { mask, paint, colours } = this.#parts;
    const shown = `${withoutCommands(maskedPrintable(line, mask))}\n`;
    if (source === undefined) return paint(stream, shown);
    const { name, index } = source;
    const { cyan, green, yellow, bold, red } = colours[stream];
    const colour = [cyan, green, yellow, bold, red][index % 5] ?? bold;
    return paint(stream, `${colour(name)}: ${shown}`);
  }

  /** Writes the JSON object if the format is JSON. `error` describes the command's failure. */
  finish(error: object | undefined): void {
    if (this.format !== "json" || this.#hasFinished) return;
    this.#hasFinished = true;
    const data = { schemaVersion: 1, ...this.#given[0]?.data, error };
    this.#parts.write(
      `${printableJson(mapTexts(data, (text) => mapOutside(text, this.#parts.mask)))}\n`,
    );
  }
}

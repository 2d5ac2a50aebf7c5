import { mapOutside, mapTexts } from "../../outside-text.ts";
import { printableJson, shownText, withoutCommands } from "../../system/printable.ts";
import type { Output, Result } from "../context.ts";

interface Parts {
  readonly format: string;
  readonly mask: (text: string) => string;
  /** Writes to stdout. */
  readonly write: (text: string) => void;
}

/** The single writer of results. */
export class OutputWriter implements Output {
  readonly #parts: Parts;
  readonly #given: Result[] = [];

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get format(): string {
    return this.#parts.format;
  }

  get isJson(): boolean {
    return this.#parts.format === "json";
  }

  result(result: Result): void {
    if (this.#given.length > 0) throw new Error("A command wrote its result twice");
    this.#given.push(result);
    const text = withoutCommands(shownText(result.text, this.#parts.mask));
    if (!this.isJson && text !== "") this.#parts.write(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** Writes the JSON object if the format is JSON. `error` describes the command's failure. */
  finish(error: Readonly<Record<string, unknown>> | undefined): void {
    if (!this.isJson) return;
    const data = { schemaVersion: 1, ...this.#given[0]?.data, error };
    this.#parts.write(`${printableJson(mapTexts(data, (text) => mapOutside(text, this.#parts.mask)))}\n`);
  }
}

import { mapOutside, mapTexts } from "../../outside-text.ts";
import { maskedPrintable, printableJson, shownText, withoutCommands } from "../../system/printable.ts";
import type { Environment } from "../../system/runtime.ts";
import type { Output, Result, Source } from "../command.ts";

interface Parts {
  readonly format: string;
  readonly mask: (text: string) => string;
  /** Writes to stdout. */
  readonly write: (text: string) => void;
  /** Writes a painted text, which must be printable. Returns a promise if the reader is slow. */
  readonly paint: (stream: "stdout" | "stderr", text: string) => void | Promise<void>;
  readonly colours: Readonly<Record<"stdout" | "stderr", Colours>>;
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

  result(result: Result): void {
    if (this.#given.length > 0) throw new Error("A command wrote its result twice");
    this.#given.push(result);
    const text = withoutCommands(shownText(result.text, this.#parts.mask));
    if (this.format !== "json" && text !== "") this.#parts.write(text.endsWith("\n") ? text : `${text}\n`);
  }

  line(stream: "stdout" | "stderr", { name, index }: Source, line: string): void | Promise<void> {
    if (this.format === "json") return undefined;
    const { mask, paint, colours } = this.#parts;
    const { cyan, green, yellow, bold, red } = colours[stream];
    const colour = [cyan, green, yellow, bold, red][index % 5] ?? bold;
    return paint(stream, `${colour(name)}: ${withoutCommands(maskedPrintable(line, mask))}\n`);
  }

  /** Writes the JSON object if the format is JSON. `error` describes the command's failure. */
  finish(error: Readonly<Record<string, unknown>> | undefined): void {
    if (this.format !== "json") return;
    const data = { schemaVersion: 1, ...this.#given[0]?.data, error };
    this.#parts.write(`${printableJson(mapTexts(data, (text) => mapOutside(text, this.#parts.mask)))}\n`);
  }
}

type Paint = (text: string) => string;

export interface Colours {
  readonly bold: Paint;
  readonly dim: Paint;
  readonly red: Paint;
  readonly green: Paint;
  readonly yellow: Paint;
  readonly cyan: Paint;
}

const same: Paint = (text) => text;
export const noColours: Colours = { bold: same, dim: same, red: same, green: same, yellow: same, cyan: same };

/** Whether lines can be redrawn on this terminal. */
export function isLive(environment: Environment): boolean {
  const ci = environment["CI"] ?? "";
  return environment["TERM"] !== "dumb" && (ci === "" || ci === "false" || ci === "0");
}

/** https://no-color.org: colour is off if the variable is set and not empty, whatever its value. */
export function isColoured(environment: Environment): boolean {
  return isLive(environment) && (environment["NO_COLOR"] ?? "") === "";
}

/** Loaded only if colour is wanted: kleur reads `process.stdout` when it loads, which takes a third of the program's start time. */
export async function loadColours(): Promise<Colours> {
  const { default: kleur } = await import("kleur");
  // `isColoured` has already decided, for stderr. kleur's own decision is based on stdout.
  kleur.enabled = true;
  const { bold, dim, red, green, yellow, cyan } = kleur;
  return { bold, dim, red, green, yellow, cyan };
}

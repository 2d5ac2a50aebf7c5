/** Shorter secrets are masked only as whole words: masked inside other words they would make all output unreadable. */
const shortestInsideWords = 4;
const mask = "***";

/** Replaces secrets with `***`, in every encoding in which they occur. */
export class Masker {
  /**
   * The shapes that are also masked inside words, keyed by a number for their first four characters, the longest first.
   */
  readonly #shapes = new Map<number, readonly string[]>();
  readonly #short = new Set<string>();
  readonly #shortPattern: { current: RegExp | undefined } = { current: undefined };

  /** Masks the secret from now on. Ignores a text without any letters or signs, which would be found everywhere. */
  hide(secret: string): void {
    if (secret.trim() === "") return;
    // A multi-line secret (a license, a key) may be printed line by line.
    const lines = secret.split(/\r?\n/).map((line) => line.trim());
    for (const part of [secret, secret.trim(), ...lines.filter((line) => line.length >= shortestInsideWords)]) {
      for (const shape of shapesOf(part)) this.#add(shape);
    }
    this.#shortPattern.current = patternOf(this.#short);
  }

  #add(shape: string): void {
    if (shape.length < shortestInsideWords) {
      this.#short.add(shape);
      return;
    }
    const key = keyAt(shape, 0);
    const present = this.#shapes.get(key) ?? [];
    // The longest first: a secret that begins with another one must be masked as a whole.
    if (!present.includes(shape))
      this.#shapes.set(
        key,
        [...present, shape].toSorted((one, other) => other.length - one.length),
      );
  }

  /**
   * One look-up per character, however many secrets there are. A cluster's keys alone have hundreds of shapes, and its
   * logs have many megabytes.
   */
  text(given: string): string {
    const pattern = this.#shortPattern.current;
    const short = new Map(pattern === undefined ? [] : given.matchAll(pattern).map((match) => [match.index, match[0]]));
    if (this.#shapes.size === 0 && short.size === 0) return given;
    const parts: string[] = [];
    let kept = 0;
    for (let place = 0; place < given.length; place += 1) {
      const shapes = this.#shapes.get(keyAt(given, place));
      const found = shapes?.find((shape) => given.startsWith(shape, place)) ?? short.get(place);
      if (found === undefined) continue;
      parts.push(given.slice(kept, place), mask);
      kept = place + found.length;
      place = kept - 1;
    }
    return [...parts, given.slice(kept)].join("");
  }

  /** Masks every text inside a value that will become JSON, including the keys of objects. */
  data(given: unknown): unknown {
    if (typeof given === "string") return this.text(given);
    if (typeof given === "bigint") return String(given);
    if (given instanceof Date) return Number.isNaN(given.getTime()) ? null : given.toISOString();
    if (given instanceof Error) return this.text(given.message);
    if (given instanceof Set) return this.data([...given]);
    if (given instanceof Map) return this.data(Object.fromEntries(given));
    if (Array.isArray(given)) return given.map((each: unknown) => this.data(each));
    if (typeof given !== "object" || given === null) return given;
    return Object.fromEntries(Object.entries(given).map(([key, value]) => [this.text(key), this.data(value)]));
  }
}

function shapesOf(secret: string): readonly string[] {
  if (secret.length < shortestInsideWords) return [secret];
  const url = encodeURIComponent(secret.toWellFormed());
  const json = JSON.stringify(secret).slice(1, -1);
  const strictUrl = url.replaceAll(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`);
  const urls = [url, strictUrl, url.replaceAll("%20", "+"), strictUrl.replaceAll("%20", "+")];
  const lowered = urls.map((each) => each.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()));
  const shell = secret.replaceAll("'", String.raw`'\''`);
  const jsons = [json, json.replaceAll("/", String.raw`\/`)];
  return [secret, ...jsons, shell, ...urls, ...lowered, ...base64Shapes(secret), ...wrappedBase64Shapes(secret)];
}

/**
 * Base64 encodes groups of three bytes, so a secret has three encodings, depending on its position in the encoded text
 * (such as the password in `user:password`). Returns the part of each encoding that the neighbouring bytes can't
 * change.
 */
function base64Shapes(secret: string): readonly string[] {
  return [0, 1, 2].flatMap((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)])
      .toString("base64")
      .replaceAll("=", "");
    const bytes = offset + Buffer.byteLength(secret);
    const stable = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor((bytes * 8) / 6));
    const shapes = [stable, stable.replaceAll("+", "-").replaceAll("/", "_")];
    return stable.length < shortestInsideWords ? [] : shapes;
  });
}

/**
 * The lines of a long secret's base64 as wrapped by PEM (64), `base64` (76) and `openssl`. The last line is left out if
 * it is too short to identify the secret.
 */
function wrappedBase64Shapes(secret: string): readonly string[] {
  const encoded = Buffer.from(secret).toString("base64");
  if (encoded.length <= 64) return [];
  return [64, 76].flatMap((width) => encoded.match(new RegExp(`.{16,${width}}`, "g")) ?? []);
}

/** A number for the four characters from there on. Different characters may share a number. */
const keyAt = (text: string, place: number): number =>
  ((text.charCodeAt(place) * 31 + text.charCodeAt(place + 1)) * 31 + text.charCodeAt(place + 2)) * 31 +
  text.charCodeAt(place + 3);

/** A pattern for short secrets, which are masked only as whole words. */
function patternOf(shapes: ReadonlySet<string>): RegExp | undefined {
  const sorted = [...shapes].toSorted((one, other) => other.length - one.length);
  const alternatives = sorted.map((shape) => RegExp.escape(shape)).join("|");
  return sorted.length === 0
    ? undefined
    : new RegExp(`(?<![\\p{L}\\p{N}_])(?:${alternatives})(?![\\p{L}\\p{N}_])`, "gu");
}

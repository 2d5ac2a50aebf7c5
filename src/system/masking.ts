/** Shorter secrets are masked only where they stand alone: as part of every other word they would make all output unreadable. */
const shortestInsideWords = 4;
const mask = "***";

/** Replaces secrets, in any of the shapes that they travel in, by `***`. */
export class Masker {
  readonly #shapes = new Set<string>();
  readonly #pattern: { current: RegExp | undefined } = { current: undefined };

  /** From now on the secret is masked. An empty one is none. */
  hide(secret: string): void {
    // A multi-line secret (a license, a key) is printed line by line by whatever prints it.
    const lines = secret.split(/\r?\n/).map((line) => line.trim());
    for (const part of [secret, secret.trim(), ...lines.filter((line) => line.length >= shortestInsideWords)]) {
      for (const shape of shapesOf(part)) this.#shapes.add(shape);
    }
    this.#pattern.current = patternOf(this.#shapes);
  }

  text(given: string): string {
    return this.#pattern.current === undefined ? given : given.replace(this.#pattern.current, mask);
  }

  /** Masks every text inside a value that is to become JSON, the keys of objects included. */
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
  if (secret === "") return [];
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
 * Base64 works on groups of three bytes, so one secret looks different depending on where in the encoded text it begins (as the password
 * does in `user:password`). Of each of the three, what its neighbours can't change.
 */
function base64Shapes(secret: string): readonly string[] {
  return [0, 1, 2].flatMap((offset) => {
    const encoded = Buffer.concat([Buffer.alloc(offset), Buffer.from(secret)])
      .toString("base64")
      .replace(/=+$/, "");
    const bytes = offset + Buffer.byteLength(secret);
    const stable = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor((bytes * 8) / 6));
    const shapes = [stable, stable.replaceAll("+", "-").replaceAll("/", "_")];
    return stable.length < shortestInsideWords ? [] : shapes;
  });
}

/** The lines of a long secret's base64 as PEM (64), `base64` (76) and `openssl` write it; the last one may be too short to know it by. */
function wrappedBase64Shapes(secret: string): readonly string[] {
  const encoded = Buffer.from(secret).toString("base64");
  if (encoded.length <= 64) return [];
  return [64, 76].flatMap((width) => encoded.match(new RegExp(`.{16,${width}}`, "g")) ?? []);
}

function patternOf(shapes: ReadonlySet<string>): RegExp | undefined {
  // The longest first: a secret that begins with another one must go whole.
  const sorted = [...shapes].toSorted((one, other) => other.length - one.length);
  const alternatives = sorted.map((shape) => {
    const escaped = RegExp.escape(shape);
    return shape.length < shortestInsideWords ? `(?<![\\p{L}\\p{N}_])${escaped}(?![\\p{L}\\p{N}_])` : escaped;
  });
  return alternatives.length === 0 ? undefined : new RegExp(alternatives.join("|"), "gu");
}

import { unicodeEscape } from "./printable.ts";

/** Shorter secrets are masked only as whole words: masked inside other words they would make all output unreadable. */
const shortestInsideWords = 4;
const mask = "***";

/** Replaces secrets with `***`, in every encoding in which they occur, in linear time. */
export class Masker {
  readonly #shapes = new Set<string>();
  /** Prepared for the present shapes when a text is masked, since secrets often become known one after another. */
  readonly #prepared: { automaton: PatternAutomaton | undefined } = { automaton: undefined };

  /** Masks the secret from now on. Ignores a text without any letters or signs, which would be found everywhere. */
  hide(secret: string): void {
    if (secret.trim() === "") return;
    // A multi-line secret (a license, a key) may be printed line by line.
    const lines = secret.split(/\r?\n/).map((line) => line.trim());
    for (const part of new Set([
      secret,
      secret.trim(),
      ...lines.filter((line) => line.length >= shortestInsideWords),
    ])) {
      const isLong = part.length > longWhole && part.includes("\n");
      for (const shape of isLong ? shapesOfWhole(part) : shapesOf(part)) this.#shapes.add(shape);
    }
    this.#prepared.automaton = undefined;
  }

  /** Masks all of a text, none of which is our own. */
  text(given: string): string {
    if (this.#shapes.size === 0) return given;
    const parts: string[] = [];
    let copied = 0;
    const { starts, ends } = this.#secretsIn(given);
    for (const [index, start] of starts.entries()) {
      parts.push(given.slice(copied, start), mask);
      copied = ends[index] ?? start;
    }
    return [...parts, given.slice(copied)].join("");
  }

  /** Where the secrets in a text start and end. Secrets that overlap count as one. */
  #secretsIn(text: string): {
    readonly starts: readonly number[];
    readonly ends: readonly number[];
  } {
    const automaton = (this.#prepared.automaton ??= new PatternAutomaton(this.#shapes));
    const starts: number[] = [];
    const ends: number[] = [];
    automaton.find(text, (from, end) => {
      const longest = end - from < shortestInsideWords ? this.#shortSecret(text, from, end) : from;
      if (longest === undefined) return;
      let start = longest;
      while ((ends.at(-1) ?? 0) > start) {
        start = Math.min(start, starts.pop() ?? start);
        ends.pop();
      }
      starts.push(start);
      ends.push(end);
    });
    return { starts, ends };
  }

  /** The start of the longest short secret that ends there as a whole word, if there is one. */
  #shortSecret(text: string, from: number, end: number): number | undefined {
    for (let start = from; start < end; start += 1)
      if (this.#shapes.has(text.slice(start, end)) && isWhole(text, start, end)) return start;
    return undefined;
  }
}

/** Whether no letter or digit adjoins the part of the text. */
const isWhole = (text: string, start: number, end: number): boolean =>
  !/[\p{L}\p{N}_]$/u.test(text.slice(Math.max(0, start - 2), start)) &&
  !/^[\p{L}\p{N}_]/u.test(text.slice(end, end + 2));

/**
 * Of a longer secret with several lines, each line is masked in all shapes, and the whole in those
 * that hide the ends of lines.
 */
const longWhole = 1_000;

const shapesOfWhole = (secret: string): readonly string[] => [
  secret,
  ...jsonShapes(secret),
  ...base64Shapes(secret),
  ...wrappedBase64Shapes(secret),
];

function shapesOf(secret: string): readonly string[] {
  if (secret.length < shortestInsideWords) return [secret];
  return [
    secret,
    ...jsonShapes(secret),
    secret.replaceAll("'", String.raw`'\''`),
    ...urlShapes(secret),
    ...htmlShapes(secret),
    ...base64Shapes(secret),
    ...wrappedBase64Shapes(secret),
  ];
}

/** As this program and others write it; Go escapes signs of HTML too, and Python all but ASCII. */
function jsonShapes(secret: string): readonly string[] {
  const json = JSON.stringify(secret).slice(1, -1);
  const go = json.replaceAll(/[<>&\u2028\u2029]/g, unicodeEscape);
  const inAscii = (text: string): string => text.replaceAll(/[\u0080-\uffff]/g, unicodeEscape);
  return [json, json.replaceAll("/", String.raw`\/`), go, inAscii(json), inAscii(go)];
}

/**
 * What Python, JavaScript's `encodeURI`, Go and browsers leave as it is in a URL, besides letters,
 * digits and `-._~`.
 */
const keptInUrls = ["/", "!'()*;,/?:@&=+$#", "$&+,;=", "$&+=:@", "!$&'()*+,%"];

function urlShapes(secret: string): readonly string[] {
  const url = encodeURIComponent(secret.toWellFormed());
  const strict = url.replaceAll(
    /[!'()*]/g,
    (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  const usual = [url, strict].flatMap((each) => [each, each.replaceAll("%20", "+")]);
  const lowered = usual.map((each) =>
    each.replaceAll(/%[0-9A-F]{2}/g, (code) => code.toLowerCase()),
  );
  const others = keptInUrls.map((kept) =>
    strict.replaceAll(/%[2-7][0-9A-F]/g, (code) => {
      const sign = decodeURIComponent(code);
      return kept.includes(sign) ? sign : code;
    }),
  );
  return [...usual, ...lowered, ...others];
}

/** Programs differ in how they write quotation marks. */
const htmlQuotes = [
  ['"', "'"],
  ["&quot;", "'"],
  ["&quot;", "&#39;"],
  ["&quot;", "&#x27;"],
  ["&quot;", "&apos;"],
  ["&#34;", "&#39;"],
] as const;

function htmlShapes(secret: string): readonly string[] {
  const html = secret.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  return htmlQuotes.map(([double, single]) => html.replaceAll('"', double).replaceAll("'", single));
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
    return [stable, stable.replaceAll("+", "-").replaceAll("/", "_")];
  });
}

/**
 * The lines of a long secret's base64 as wrapped by PEM (64), `base64` (76) and `openssl`. The last line is left out if
 * it is too short to identify the secret.
 */
function wrappedBase64Shapes(secret: string): readonly string[] {
  const encoded = Buffer.from(secret).toString("base64");
  return [64, 76].flatMap((width) => encoded.match(new RegExp(`.{16,${width}}`, "g")) ?? []);
}

const root = 0;
const unitCount = 0x10000;

/** Leads from a node of the trie to one of its children. */
interface Edge {
  readonly parent: number;
  /** A UTF-16 code unit. */
  readonly unit: number;
  readonly child: number;
}

/**
 * Finds all occurrences of many patterns in a text in one pass, with the automaton of Aho and Corasick
 * (https://doi.org/10.1145/360825.360855). Preparing it takes time in proportion to the patterns,
 * and a search in proportion to the text, whatever they contain: an attacker may choose both.
 */
class PatternAutomaton {
  /** The child of a node of the trie, by node and UTF-16 code unit. */
  readonly #children = new Map<number, number>();
  /** The node for the longest suffix of a node's text that is another node's text. */
  readonly #fallback: number[] = [root];
  /** The length of the longest pattern with which a node's text ends, or 0. */
  readonly #longest: number[] = [0];

  constructor(patterns: Iterable<string>) {
    const edges: Edge[][] = [];
    for (const pattern of patterns) {
      let node = root;
      for (let position = 0; position < pattern.length; position += 1) {
        const unit = pattern.charCodeAt(position);
        const key = node * unitCount + unit;
        const child = this.#children.get(key) ?? this.#fallback.length;
        if (child === this.#fallback.length) {
          this.#children.set(key, child);
          (edges[position] ??= []).push({ parent: node, unit, child });
          this.#fallback.push(root);
          this.#longest.push(0);
        }
        node = child;
      }
      this.#longest[node] = pattern.length;
    }
    this.#link(edges.flat());
  }

  /** Sets the fallbacks. The edges to nodes of shorter texts come first. */
  #link(edges: readonly Edge[]): void {
    for (const { parent, unit, child } of edges) {
      if (parent !== root) this.#fallback[child] = this.#step(this.#fallback[parent] ?? root, unit);
      this.#longest[child] ||= this.#longest[this.#fallback[child] ?? root] ?? 0;
    }
  }

  /**
   * Calls `onFound` for each position at which patterns end, from left to right, with the start of
   * the longest of them.
   */
  find(text: string, onFound: (start: number, end: number) => void): void {
    let node = root;
    for (let position = 0; position < text.length; position += 1) {
      node = this.#step(node, text.charCodeAt(position));
      const length = this.#longest[node] ?? 0;
      if (length > 0) onFound(position + 1 - length, position + 1);
    }
  }

  #step(from: number, unit: number): number {
    for (let node = from; ; node = this.#fallback[node] ?? root) {
      const child = this.#children.get(node * unitCount + unit);
      if (child !== undefined) return child;
      if (node === root) return root;
    }
  }
}

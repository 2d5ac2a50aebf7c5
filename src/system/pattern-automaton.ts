/** The root of the trie. */
const root = 0;
const unitCount = 0x10000;

/**
 * Finds all occurrences of many patterns in a text in one pass, with the automaton of Aho and Corasick
 * (https://doi.org/10.1145/360825.360855). Preparing it takes time in proportion to the patterns, and a search in proportion to the text, whatever
 * they contain: an attacker may choose both.
 */
export class PatternAutomaton {
  /** The child of a node of the trie, by node and UTF-16 code unit. */
  readonly #children = new Map<number, number>();
  /** The node for the longest suffix of a node's text that is another node's text. */
  readonly #fallback: number[] = [root];
  /** The length of the longest pattern with which a node's text ends, or 0. */
  readonly #longest: number[] = [0];

  constructor(patterns: Iterable<string>) {
    const parents: number[] = [root];
    const units: number[] = [0];
    const depths: number[] = [0];
    for (const pattern of patterns) {
      let node = root;
      for (let place = 0; place < pattern.length; place += 1) {
        const unit = pattern.charCodeAt(place);
        const key = node * unitCount + unit;
        const child = this.#children.get(key) ?? parents.length;
        if (child === parents.length) {
          this.#children.set(key, child);
          parents.push(node);
          units.push(unit);
          depths.push(place + 1);
          this.#fallback.push(root);
          this.#longest.push(0);
        }
        node = child;
      }
      this.#longest[node] = pattern.length;
    }
    this.#link(parents, units, depths);
  }

  /** Sets the fallbacks, the nodes of shorter texts first. */
  #link(parents: readonly number[], units: readonly number[], depths: readonly number[]): void {
    for (const node of inOrderOf(depths)) {
      const depth = depths[node] ?? 0;
      if (depth > 1) this.#fallback[node] = this.#step(this.#fallback[parents[node] ?? root] ?? root, units[node] ?? 0);
      this.#longest[node] ||= this.#longest[this.#fallback[node] ?? root] ?? 0;
    }
  }

  /** Calls `onFound`, for each place where patterns end, with the longest of them, in the order of these places. */
  find(text: string, onFound: (start: number, end: number) => void): void {
    let node = root;
    for (let place = 0; place < text.length; place += 1) {
      node = this.#step(node, text.charCodeAt(place));
      const length = this.#longest[node] ?? 0;
      if (length > 0) onFound(place + 1 - length, place + 1);
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

/** The indices of `depths`, the lowest depth first, in linear time. */
function inOrderOf(depths: readonly number[]): readonly number[] {
  const byDepth: number[][] = [];
  depths.forEach((depth, node) => (byDepth[depth] ??= []).push(node));
  return byDepth.flat();
}

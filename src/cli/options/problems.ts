import { ClusterError } from "../../errors.ts";
import { unmarked } from "../../outside-text.ts";
import type { NameFlags } from "./flag-names.ts";

/** Collects all problems of one command line, so that they can be reported together. */
export class Problems {
  readonly #found: string[] = [];
  readonly #hint: string;
  readonly #nameFlags: NameFlags;

  /** `hint` names where to get help, such as `cluster-cloud create --help`. */
  constructor(hint: string, nameFlags: NameFlags = (text) => text) {
    this.#hint = hint;
    this.#nameFlags = nameFlags;
  }

  /** A problem is a sentence that begins with its subject: `--masters: 2 is even`. */
  add(text: string): void {
    const problem = this.#nameFlags(text);
    if (!this.#found.includes(problem)) this.#found.push(problem);
  }

  get all(): readonly string[] {
    return this.#found.map(unmarked);
  }

  /** Throws one `bad-usage` error that lists every problem. `facts.problems` also holds them. */
  throwIfAny(): void {
    const [first, ...others] = this.#found;
    if (first === undefined) return;
    const message = others.length === 0 ? first : this.#found.map((problem) => `\n  ${problem}`).join("");
    throw new ClusterError("bad-usage", others.length === 0 ? message : `${this.#found.length} problems:${message}`, {
      hint: `See ${this.#hint}`,
      facts: { problems: this.#found },
    });
  }
}

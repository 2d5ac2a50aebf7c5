import { executablePath } from "../e2e/support/executable.ts";
import { argumentLists } from "../support/argument-lists.ts";
import type { Exhibit } from "./fault.ts";

const everyMs = 100;
const programs = executablePath("cluster-");

interface Watched extends Disposable {
  /** Argument lists in which one of the secrets was seen. */
  readonly seen: readonly Exhibit[];
}

/** Looks for secrets in the argument lists of all processes again and again, for all worlds at once. */
export class ArgumentWatch implements Disposable {
  readonly #watched = new Map<
    Watched,
    { readonly secrets: readonly string[]; readonly seen: Exhibit[] }
  >();
  readonly #timer = setInterval(() => this.#look(), everyMs);

  watch(secrets: readonly string[]): Watched {
    const seen: Exhibit[] = [];
    const watched = { seen, [Symbol.dispose]: () => void this.#watched.delete(watched) };
    this.#watched.set(watched, { secrets, seen });
    return watched;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    if (this.#watched.size === 0) return;
    for (const words of argumentLists()) {
      // What its user gave the program is no fault of the program's.
      if (words.startsWith(programs)) continue;
      for (const { secrets, seen } of this.#watched.values())
        if (secrets.some((secret) => words.includes(secret)))
          seen.push({ where: "an argument list", text: words });
    }
  }
}

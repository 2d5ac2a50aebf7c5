import { wildcard } from "./filters.ts";

/**
 * A scripted fault. `before`: the action is not executed. `after`: it is executed, but its response is replaced, changed or lost. `launch`:
 * RunInstances succeeds, then a machine ends in `terminated` with `code` and `message` as its StateReason; each machine counts.
 */
export interface Fault {
  /** The name of an action, or `*`. */
  readonly action: string;
  readonly when: "before" | "after" | "launch";
  /** How often it applies. `"always"`: until it is cleared. */
  readonly times: number | "always";
  /** How long it lasts, from the first request to which it applies. */
  readonly forMs?: number;
  /** How many matching requests succeed first. */
  readonly skip?: number;
  readonly region?: string;
  /** Patterns (`*`, `?`) for request parameters: `{ "NetworkInterface.1.SubnetId": "subnet-*" }`. */
  readonly match?: Readonly<Record<string, string>>;
  readonly code?: string;
  readonly message?: string;
  /** Closes the connection without a response. */
  readonly lost?: true;
  /** Sends no response until the client gives up. */
  readonly hangs?: true;
  /** Sends this instead of EC2's response, as a proxy or captive portal would. */
  readonly raw?: RawAnswer;
  /** `after` only: closes the connection in the middle of the response. */
  readonly cut?: true;
  /** `after` only: changes the response. */
  readonly change?: AnswerChange;
  /** Waits this long first. If nothing else is set, the real response follows. */
  readonly delayMs?: number;
}

export interface RawAnswer {
  readonly status: number;
  /** `ACTION` stands for the name of the action. */
  readonly body: string;
  /** Default: `text/xml`. */
  readonly contentType?: string;
  /** Where a redirect leads. */
  readonly location?: string;
}

/** Without one of these, a fault has no effect. */
export const faultEffects = [
  "code",
  "lost",
  "hangs",
  "raw",
  "cut",
  "change",
  "delayMs",
] as const satisfies (keyof Fault)[];

export interface FaultOccasion {
  readonly action: string;
  readonly region: string;
  readonly fields: ReadonlyMap<string, string>;
}

/** How a response can be changed; see strike.ts. */
export const answerChanges = ["first-half", "half-tags", "no-address", "no-machines"] as const;
export type AnswerChange = (typeof answerChanges)[number];

interface Planned {
  readonly fault: Fault;
  skipsLeft: number;
  timesLeft: number;
  endsAtMs: number | undefined;
  hasApplied: boolean;
}

/** Faults that were added together. Disposing of them clears them. */
export interface AddedFaults extends AsyncDisposable {
  /** Whether each of them has applied to a request. */
  hasStruck(): boolean;
}

/** The faults of one cloud. They apply in the order in which they were added, each until it is used up. */
export class Faults {
  #planned: Planned[] = [];

  add(...faults: readonly Fault[]): AddedFaults {
    const added = faults.map((fault): Planned => {
      const timesLeft = fault.times === "always" ? Infinity : fault.times;
      return {
        fault,
        timesLeft,
        skipsLeft: fault.skip ?? 0,
        endsAtMs: undefined,
        hasApplied: false,
      };
    });
    this.#planned.push(...added);
    return {
      hasStruck: () => added.every(({ hasApplied }) => hasApplied),
      [Symbol.asyncDispose]: async () => {
        this.#planned = this.#planned.filter((planned) => !added.includes(planned));
      },
    };
  }

  clear(): void {
    this.#planned = [];
  }

  /** Returns the fault that applies to this request, and counts it. */
  take(when: Fault["when"], occasion: FaultOccasion): Fault | undefined {
    const nowMs = performance.now();
    const found = this.#planned.find(
      ({ fault, timesLeft, endsAtMs = Infinity }) =>
        timesLeft > 0 && nowMs < endsAtMs && applies(fault, when, occasion),
    );
    if (found === undefined) return undefined;
    if (found.skipsLeft > 0) {
      found.skipsLeft -= 1;
      return undefined;
    }
    found.timesLeft -= 1;
    found.hasApplied = true;
    if (found.fault.forMs !== undefined) found.endsAtMs ??= nowMs + found.fault.forMs;
    return found.fault;
  }
}

function applies(fault: Fault, when: Fault["when"], occasion: FaultOccasion): boolean {
  if (fault.when !== when) return false;
  if (fault.action !== "*" && fault.action !== occasion.action) return false;
  if (fault.region !== undefined && fault.region !== occasion.region) return false;
  return Object.entries(fault.match ?? {}).every(([name, pattern]) =>
    wildcard(pattern).test(occasion.fields.get(name) ?? ""),
  );
}

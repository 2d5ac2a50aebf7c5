import { wildcard } from "./filters.ts";

/**
 * One scripted misfortune. `before`: instead of the action; `after`: the action is done and its answer replaced or lost;
 * `launch`: RunInstances succeeds, then a machine ends in `terminated` with `code` and `message` as StateReason (counted
 * per machine).
 */
export interface Fault {
  /** An action's name, or `*`. */
  readonly action: string;
  readonly when: "before" | "after" | "launch";
  /** How often it strikes; `"always"` until cleared. */
  readonly times: number | "always";
  /** Matching requests that pass first. */
  readonly skip?: number;
  readonly region?: string;
  /** Request parameters that must match, `*` and `?` allowed: `{ "NetworkInterface.1.SubnetId": "subnet-*" }`. */
  readonly match?: Readonly<Record<string, string>>;
  readonly code?: string;
  readonly message?: string;
  /** The connection is cut instead of answered. */
  readonly lost?: true;
  /** There is no answer until the client gives up. */
  readonly hangs?: true;
  /** This is sent instead of an answer of EC2's, as by a proxy or a captive portal. */
  readonly raw?: RawAnswer;
  /** Waits this long; if nothing else is given, the answer then goes out as it is. */
  readonly delayMs?: number;
}

interface RawAnswer {
  readonly status: number;
  readonly body: string;
  /** Default: `text/xml`. */
  readonly contentType?: string;
}

/** A fault needs one of these to do anything. */
export const faultEffects = ["code", "lost", "hangs", "raw", "delayMs"] as const satisfies (keyof Fault)[];

export interface FaultOccasion {
  readonly action: string;
  readonly region: string;
  readonly fields: ReadonlyMap<string, string>;
}

interface Planned {
  readonly fault: Fault;
  skipsLeft: number;
  timesLeft: number;
}

/** The faults of one cloud, struck in the order they were added, each until it is used up. */
export class Faults {
  #planned: Planned[] = [];

  add(fault: Fault): void {
    const timesLeft = fault.times === "always" ? Infinity : fault.times;
    this.#planned.push({ fault, timesLeft, skipsLeft: fault.skip ?? 0 });
  }

  clear(): void {
    this.#planned = [];
  }

  /** The fault that strikes on this occasion, and counts it. */
  take(when: Fault["when"], occasion: FaultOccasion): Fault | undefined {
    const found = this.#planned.find(({ fault, timesLeft }) => timesLeft > 0 && applies(fault, when, occasion));
    if (found === undefined) return undefined;
    if (found.skipsLeft > 0) {
      found.skipsLeft -= 1;
      return undefined;
    }
    found.timesLeft -= 1;
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

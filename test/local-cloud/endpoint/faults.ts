import { wildcard } from "./filters.ts";

/**
 * A scripted fault. `before`: the action is not executed. `after`: it is executed, but its response is replaced or lost. `launch`: RunInstances
 * succeeds, then a machine ends in `terminated` with `code` and `message` as its StateReason; each machine counts.
 */
export interface Fault {
  /** The name of an action, or `*`. */
  readonly action: string;
  readonly when: "before" | "after" | "launch";
  /** How often it applies. `"always"`: until it is cleared. */
  readonly times: number | "always";
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
  /** Waits this long first. If nothing else is set, the real response follows. */
  readonly delayMs?: number;
}

interface RawAnswer {
  readonly status: number;
  readonly body: string;
  /** Default: `text/xml`. */
  readonly contentType?: string;
}

/** Without one of these, a fault has no effect. */
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

/** The faults of one cloud. They apply in the order in which they were added, each until it is used up. */
export class Faults {
  #planned: Planned[] = [];

  add(fault: Fault): void {
    const timesLeft = fault.times === "always" ? Infinity : fault.times;
    this.#planned.push({ fault, timesLeft, skipsLeft: fault.skip ?? 0 });
  }

  clear(): void {
    this.#planned = [];
  }

  /** Returns the fault that applies to this request, and counts it. */
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

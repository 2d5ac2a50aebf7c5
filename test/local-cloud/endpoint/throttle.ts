import type { Behaviour } from "../behaviour.ts";
import { Ec2Error } from "./ec2-error.ts";

/** A token bucket, as EC2 has for each account and region. Without a limit it never throttles. */
export class Throttle {
  #tokens: number | undefined;
  #filledAt = 0;

  /** Counts one call. Throws `RequestLimitExceeded` if the bucket is empty. */
  pass(limit: Behaviour["throttle"], nowMs: number): void {
    if (limit === undefined) {
      this.#tokens = undefined;
      return;
    }
    const gained = ((nowMs - this.#filledAt) / 1000) * limit.perSecond;
    const tokens = Math.min(limit.burst, (this.#tokens ?? limit.burst) + gained);
    this.#filledAt = nowMs;
    this.#tokens = tokens < 1 ? tokens : tokens - 1;
    if (tokens < 1) throw new Ec2Error("RequestLimitExceeded", "Request limit exceeded.");
  }
}

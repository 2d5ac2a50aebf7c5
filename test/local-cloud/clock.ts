/** The cloud's own clock: the `Date` header, launch times, and what a signature's time is compared with. */
export class CloudClock {
  #skewMs = 0;

  now(): Date {
    return new Date(Date.now() + this.#skewMs);
  }

  /** Sets how far the cloud's clock is ahead of this machine's (negative: behind). */
  skew(skewMs: number): void {
    this.#skewMs = skewMs;
  }
}

/** The cloud's clock, for `Date` headers, launch times and the check of a signature's time. */
export class CloudClock {
  #skewMs = 0;

  now(): Date {
    return new Date(Date.now() + this.#skewMs);
  }

  /** Sets how far the cloud's clock is ahead of this machine's. Negative: behind. */
  skew(skewMs: number): void {
    this.#skewMs = skewMs;
  }
}

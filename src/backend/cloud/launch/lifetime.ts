/** A cloud cluster ends this long after its launch, always. */
export const lifetimeMs = 2 * 60 * 60 * 1000;

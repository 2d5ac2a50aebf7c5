/** Every cloud cluster ends this long after its launch. */
export const lifetimeMs = 2 * 60 * 60 * 1000;

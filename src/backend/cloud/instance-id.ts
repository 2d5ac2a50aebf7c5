/** `i-0123456789abcdef0`, or the shorter form of old accounts. */
export const isInstanceId = (found: unknown): found is string =>
  typeof found === "string" && /^i-[0-9a-f]{8,17}$/.test(found);

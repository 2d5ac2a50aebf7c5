/** Asks at the first call only; later calls get the same answer, or the same failure. */
export function once<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  const kept: { answer?: Promise<Value> } = {};
  return () => (kept.answer ??= ask());
}

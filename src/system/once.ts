/** Calls `ask` on the first call only. Later calls get the same answer or the same failure. */
export function once<Value>(ask: () => Promise<Value>): () => Promise<Value> {
  const kept: { answer?: Promise<Value> } = {};
  return () => (kept.answer ??= ask());
}

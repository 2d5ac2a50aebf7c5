/** The same bytes in chunks of at least `leastBytes`, except the last one. Sending thousands of small chunks is slow. */
export async function* gather(
  source: AsyncIterable<Uint8Array>,
  leastBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  const pending: Uint8Array[] = [];
  const size = { bytes: 0 };
  for await (const chunk of source) {
    pending.push(chunk);
    size.bytes += chunk.length;
    if (size.bytes < leastBytes) continue;
    yield Buffer.concat(pending.splice(0));
    size.bytes = 0;
  }
  if (pending.length > 0) yield Buffer.concat(pending);
}

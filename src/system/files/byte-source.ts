import { IncompleteArchive } from "./archive-problem.ts";

/** Reads a stream piece by piece. Throws `IncompleteArchive` if the stream ends within a piece. */
export interface ByteSource {
  /** Returns exactly this many bytes; they should be few. */
  take(count: number): Promise<Buffer>;
  /** Yields exactly this many bytes, in chunks as they arrive. */
  stream(count: number): AsyncGenerator<Uint8Array, void, undefined>;
  /** Reads on to the end. Resolves with false, without having read everything, if more than `limit` bytes follow. */
  endsWithin(limit: number): Promise<boolean>;
}

export function byteSource(chunks: AsyncIterable<Uint8Array>): ByteSource {
  const iterator = chunks[Symbol.asyncIterator]();
  const state: { rest: Uint8Array } = { rest: new Uint8Array() };

  /** Returns the next bytes, at most `most`; undefined at the end. */
  const next = async (most: number): Promise<Uint8Array | undefined> => {
    while (state.rest.length === 0) {
      const result = await iterator.next();
      if (result.done === true) return undefined;
      state.rest = result.value;
    }
    const piece = state.rest.subarray(0, most);
    state.rest = state.rest.subarray(piece.length);
    return piece;
  };

  async function* stream(count: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (let left = count; left > 0;) {
      const piece = await next(left);
      if (piece === undefined) throw new IncompleteArchive();
      left -= piece.length;
      yield piece;
    }
  }

  return {
    stream,
    take: async (count) => {
      const taken: Uint8Array[] = [];
      for await (const chunk of stream(count)) taken.push(chunk);
      return Buffer.concat(taken);
    },
    endsWithin: async (limit) => {
      for (let left = limit; ;) {
        const piece = await next(left + 1);
        if (piece === undefined) return true;
        left -= piece.length;
        if (left < 0) return false;
      }
    },
  };
}

/** Keeps the end of a text that comes in parts, so that a command that never stops talking can't fill the memory. */
export interface OutputTail {
  add(text: string): void;
  /** The last `limit` characters of all that was added. */
  text(): string;
}

export function createOutputTail(limit: number): OutputTail {
  const parts: string[] = [];
  const kept = { length: 0 };
  return {
    add: (text) => {
      parts.push(text);
      kept.length += text.length;
      for (let first = parts[0] ?? ""; kept.length - first.length > limit; first = parts[0] ?? "") {
        kept.length -= first.length;
        parts.shift();
      }
    },
    text: () => parts.join("").slice(-limit),
  };
}

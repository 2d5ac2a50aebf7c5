/** Keeps the end of a text that arrives in chunks, so that a command with endless output can't fill the memory. */
export interface OutputTail {
  add(text: string): void;
  /** Returns the last `limit` characters of the text. */
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

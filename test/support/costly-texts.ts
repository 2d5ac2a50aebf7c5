/** Texts of 10 MB each, in forms that cost parsers most. */
export const size = 10_000_000;
export const filled = (piece: string): string => piece.repeat(Math.ceil(size / piece.length));
/** `piece` gets the number of each line; the lines together have 10 MB. */
const lines = (piece: (index: number) => string): string =>
  Array.from({ length: Math.floor(size / (piece(0).length + 1)) }, (_, index) => piece(index)).join(
    "\n",
  );

/** For texts of any form. */
export const anyTexts: readonly string[] = [
  ...[".", " ", "\n", "{", "[", "a", '"', "1.", " \n", "\u001b[", "//", "é\u0301"].map(filled),
  ...[".", " "].map((piece) => `${filled(piece)}x`),
  lines((index) => `secret-that-begins-alike-${index}`),
];
export const jsonTexts: readonly string[] = [
  ...["[", '{"a":', '"', "1", '{"a":1},'].map(filled),
  `[${filled("1,")}1]`,
  `{${lines((index) => `"k${index}":1,`)}"a":1}`,
];
export const yamlTexts: readonly string[] = [
  ...["[", "{a: ", "- ", "? ", "a:\n", "*a ", "%a\n", "---\n", "1:", "]\n", "!a "].map(filled),
  ...["[", "- ", "1:", "]\n", "&a ", "*a ", "%a\n"].map((piece) => filled(piece).slice(0, 200_000)),
  `${"[".repeat(50_000)}${"]".repeat(50_000)}`,
  Array.from({ length: 30_000 }, (_, index) => `k${index}: 1`).join("\n"),
  Array.from({ length: 5_000 }, (_, index) => `- &a${index} x\n- *a${index}`).join("\n"),
  bombOf((name) => `[*${name}, *${name}, *${name}]`),
  bombOf((name) => `{<<: [*${name}, *${name}, *${name}]}`),
];

function bombOf(level: (name: string) => string): string {
  const levels = Array.from(
    { length: 60 },
    (_, index) => `a${index + 1}: &a${index + 1} ${level(`a${index}`)}`,
  );
  return ["a0: &a0 {k: v}", ...levels].join("\n");
}

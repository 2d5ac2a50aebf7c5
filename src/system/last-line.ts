/**
 * Returns the last line of a program's output that isn't blank, or an empty text. It usually says why the program
 * failed.
 */
export const lastLine = (text: string): string => text.trimEnd().split("\n").at(-1)?.trimStart() ?? "";

import { outside } from "../outside-text.ts";
/**
 * Returns the last line of a program's output that isn't blank, marked as outside text, or an empty text. It usually says
 * why the program failed.
 */
export const lastLine = (text: string): string => outside(text.trimEnd().split("\n").at(-1)?.trimStart() ?? "");

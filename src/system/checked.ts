/**
 * The outcome of reading something that a person gave: its value, or every problem with it, each a sentence for people. Problems are
 * values, not exceptions, so that all those of one command line can be told together (`bad-usage`).
 */
export type Checked<Value> =
  | { readonly value: Value; readonly problems?: undefined }
  | { readonly value?: undefined; readonly problems: readonly string[] };

export const problem = (text: string): { readonly problems: readonly string[] } => ({ problems: [text] });

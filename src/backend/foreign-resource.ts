/**
 * Something that carries our tags or labels but isn't ours, because their values don't fit. No command changes it;
 * `doctor` and `-v` report it.
 */
export interface ForeignResource {
  /** A printable text, such as `instance i-0123456789abcdef0`. */
  readonly what: string;
  /** A printable text, such as `its tag cluster-e2e:role is missing`. It holds names of tags, never their values. */
  readonly why: string;
}

export const foreignResourceText = ({ what, why }: ForeignResource): string =>
  `Ignored, because this program did not create it in this form: ${what}: ${why}.`;

/** Makes any foreign id safe to print. */
export const shownId = (id: unknown): string => (String(id).match(/[\w.:-]/g) ?? []).slice(0, 80).join("");

/** The texts that were found, and their names in the cloud or the engine. Both are keyed by our own names for them. */
export interface FoundTexts {
  /** `tag` or `label`. */
  readonly kind: string;
  readonly names: Readonly<Record<string, string>>;
  readonly texts: Readonly<Record<string, string | undefined>>;
}

type Values = Readonly<Record<string, unknown>>;
type Complete<Some> = { readonly [Key in keyof Some]: NonNullable<Some[Key]> };

/**
 * Returns the parsed values if every required text is present and well-formed, and every optional text is well-formed
 * where present. Otherwise returns a text that names the faulty ones. `required` and `optional` hold the parsed values,
 * keyed by the names used here; `undefined` means missing or malformed.
 */
export function complete<Required extends Values>(
  { kind, names, texts }: FoundTexts,
  required: Required,
  optional: Values,
): Complete<Required> | string {
  const faults = [
    ...Object.keys(required).filter((name) => required[name] === undefined),
    ...Object.keys(optional).filter((name) => optional[name] === undefined && texts[name] !== undefined),
  ];
  if (faults.length === 0) return required as Complete<Required>;
  const said = (name: string): string => (texts[name] === undefined ? "is missing" : "is malformed");
  return faults.map((name) => `its ${kind} ${names[name]} ${said(name)}`).join(", ");
}

/** Something with tags or labels of ours that isn't ours, since it doesn't say what ours say. Nothing acts on it; `doctor` and `-v` tell of it. */
export interface Stranger {
  /** Such as `instance i-0123456789abcdef0`; printable. */
  readonly what: string;
  /** Such as `its tag cluster-e2e:role is missing`; printable: names of tags, never what they hold. */
  readonly why: string;
}

export const strangerText = ({ what, why }: Stranger): string =>
  `Left alone, since this program did not make it so: ${what}: ${why}.`;

/** Somebody else's id as people can be shown it, whatever it is. */
export const shownId = (id: unknown): string => (String(id).match(/[\w.:-]/g) ?? []).slice(0, 80).join("");

/** What was found, and what it is called there; both by the names that it has here. */
export interface FoundTexts {
  /** `tag` or `label`. */
  readonly kind: string;
  readonly names: Readonly<Record<string, string>>;
  readonly texts: Readonly<Record<string, string | undefined>>;
}

type Values = Readonly<Record<string, unknown>>;
type Complete<Some> = { readonly [Key in keyof Some]: NonNullable<Some[Key]> };

/**
 * All of `required`, where each of them was found and has its shape, and each of `optional` has it that was found at all. Otherwise a text that
 * names those at fault. Both hold what was read, by the names that it has here; `undefined`: nothing of the right shape.
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
  const said = (name: string): string => (texts[name] === undefined ? "is missing" : "has an unknown form");
  return faults.map((name) => `its ${kind} ${names[name]} ${said(name)}`).join(", ");
}

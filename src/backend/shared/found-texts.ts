import {
  parseClusterId,
  parseCounts,
  parseCreationId,
  parseDistribution,
  parseIndex,
  parseMoment,
  parseRole,
  parseUserName,
  parseVariant,
  parseWebUi,
} from "../../model/parse-values.ts";
import * as read from "../../model/reader.ts";

/** The parsers of the texts in tags and labels, by our own names for these. */
export const textParsers = {
  clusterId: parseClusterId,
  counts: parseCounts,
  creationId: parseCreationId,
  distribution: parseDistribution,
  expiresAt: parseMoment,
  index: parseIndex,
  indexBase: parseIndex,
  reach: read.oneOf("direct", "published"),
  role: parseRole,
  sshUser: parseUserName,
  variant: parseVariant,
  webUi: parseWebUi,
} as const;

type TextName = keyof typeof textParsers;
type TextValue<Name extends TextName> = Exclude<ReturnType<(typeof textParsers)[Name]>, undefined>;

/** The texts that were found, and their names in the cloud or the engine. Both are keyed by our own names for them. */
interface FoundTexts {
  /** `tag` or `label`. */
  readonly kind: string;
  readonly names: Readonly<Partial<Record<TextName, string>>>;
  readonly texts: Readonly<Partial<Record<TextName, string | undefined>>>;
}

/**
 * Returns the parsed values if every required text is present and well-formed, and every optional text is well-formed where present. Otherwise returns a
 * text that names the faulty ones.
 */
export function readTexts<Required extends TextName, Optional extends TextName>(
  { kind, names, texts }: FoundTexts,
  { required, optional }: { readonly required: readonly Required[]; readonly optional: readonly Optional[] },
):
  | ({ readonly [Name in Required]: TextValue<Name> } & { readonly [Name in Optional]: TextValue<Name> | undefined })
  | string {
  const valueOf = (name: TextName): unknown => textParsers[name](texts[name]);
  const faults = [
    ...required.filter((name) => valueOf(name) === undefined),
    ...optional.filter((name) => valueOf(name) === undefined && texts[name] !== undefined),
  ];
  const said = (name: TextName): string => (texts[name] === undefined ? "is missing" : "is malformed");
  if (faults.length > 0) return faults.map((name) => `its ${kind} ${names[name]} ${said(name)}`).join(", ");
  return Object.fromEntries([...required, ...optional].map((name) => [name, valueOf(name)])) as never;
}

/**
 * Throws unless every value of these tags or labels can be read back: no command would list or remove a machine whose tags don't parse, so it must
 * not be created. The checks of the options come first, so this is a bug of the program.
 */
export function assertReadable(texts: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(texts)) {
    if (value === undefined || (isTextName(name) && textParsers[name](value) === undefined)) {
      throw new TypeError(`No command could read this creation: its ${name} would be ${JSON.stringify(value)}`);
    }
  }
}

const isTextName = (name: string): name is TextName => Object.hasOwn(textParsers, name);

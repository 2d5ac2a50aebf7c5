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

/** The parsers with which the commands read tags and labels back, by our own names for these. */
const parsers: Readonly<Record<string, (found: unknown) => unknown>> = {
  clusterId: parseClusterId,
  counts: parseCounts,
  creationId: parseCreationId,
  distribution: parseDistribution,
  expiresAt: parseMoment,
  index: parseIndex,
  indexBase: parseIndex,
  role: parseRole,
  sshUser: parseUserName,
  variant: parseVariant,
  webUi: parseWebUi,
};

/**
 * Throws unless every value of these tags or labels can be read back: no command would list or remove a machine whose tags don't parse, so it must
 * not be created. The checks of the options come first, so this is a bug of the program.
 */
export function assertReadable(texts: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(texts)) {
    if (value === undefined || (parsers[name]?.(value) === undefined && name in parsers)) {
      throw new TypeError(`No command could read this creation: its ${name} would be ${JSON.stringify(value)}`);
    }
  }
}

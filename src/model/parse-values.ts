import { type Counts, type Role, type Variant, type WebUi, roles, variants } from "./cluster-record.ts";

/**
 * Parsers for the values of a cluster record. They read every text that comes from outside: tags, labels, API answers, files of older versions. Each
 * takes anything and returns the value, or `undefined` if it has another shape. A parsed value is safe in a path, in a line of configuration and on a
 * terminal, so that no other code has to check it.
 */

/** `--cluster-id` accepts the same ids. */
export function parseClusterId(found: unknown): string | undefined {
  return matching(found, /^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$/);
}

export function parseCreationId(found: unknown): string | undefined {
  return matching(found, /^[0-9a-f]{16}$/);
}

export function parseRole(found: unknown): Role | undefined {
  return roles.find((role) => role === found);
}

export function parseVariant(found: unknown): Variant | undefined {
  return found === "none" ? found : variants.find((variant) => variant === found);
}

export function parseWebUi(found: unknown): WebUi | undefined {
  const text = matching(found, /^(?:none|https?(?::[1-9]\d{0,4}\/[A-Za-z0-9._~%\/-]{0,199})?)$/);
  return text as WebUi | undefined;
}

/** A node's number within its role. A cluster has 1,000 nodes at most. */
export function parseIndex(found: unknown): number | undefined {
  return wholeNumber(found, { least: 0, most: 999 });
}

/** The requested number of nodes per role: `master=1 agent=2 public_agent=1`. */
export function parseCounts(found: unknown): Counts | undefined {
  const text = matching(found, /^master=\d{1,4} agent=\d{1,4} public_agent=\d{1,4}$/);
  return text === undefined ? undefined : parseCountsObject(Object.fromEntries(text.split(" ").map(pairOf)));
}

/** The same counts in JSON: `{ "master": 1, "agent": 2, "public_agent": 1 }`. */
export function parseCountsObject(found: unknown): Counts | undefined {
  if (typeof found !== "object" || found === null) return undefined;
  const counts = new Map(Object.entries(found));
  const read = (role: Role): number | undefined => wholeNumber(counts.get(role), { least: 0, most: 1000 });
  const [master, agent, publicAgent] = [read("master"), read("agent"), read("public_agent")];
  if (master === undefined || agent === undefined || publicAgent === undefined) return undefined;
  return { master, agent, public_agent: publicAgent };
}

/** `debian-12`, `own image`, or `image` with an image's name, such as `image registry.example.com/node:1`. */
export function parseDistribution(found: unknown): string | undefined {
  return matching(found, /^[a-z0-9][a-z0-9.-]{0,62}$|^own image$|^image [A-Za-z0-9][A-Za-z0-9._/:@-]{0,499}$/);
}

/** A user's name on a node. `--ssh-user` accepts the same names. */
export function parseUserName(found: unknown): string | undefined {
  return matching(found, /^[a-z_][a-z0-9_-]{0,31}$/);
}

/** RFC 3339, such as `2026-01-01T00:00:00.5Z`. */
export function parseMoment(found: unknown): Date | undefined {
  const text = matching(found, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/);
  const moment = new Date(text ?? Number.NaN);
  return Number.isNaN(moment.getTime()) ? undefined : moment;
}

/** Not by `node:net`, which every start of a program would load. */
export function parseIpv4(found: unknown): string | undefined {
  return matching(found, /^(?:(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?!$)|$)){4}$/);
}

/** A TCP port, as a number or a text. */
export function parsePort(found: unknown): number | undefined {
  return wholeNumber(found, { least: 1, most: 65_535 });
}

/** `--cloud-region` accepts the same regions. Regions are also folders on this machine. */
export function parseRegion(found: unknown): string | undefined {
  return matching(found, /^[a-z]{2,8}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2}$/);
}

function matching(found: unknown, shape: RegExp): string | undefined {
  return typeof found === "string" && shape.test(found) ? found : undefined;
}

function wholeNumber(
  found: unknown,
  { least, most }: { readonly least: number; readonly most: number },
): number | undefined {
  const text = typeof found === "number" ? String(found) : matching(found, /^(?:0|[1-9]\d{0,8})$/);
  const number = text === undefined ? Number.NaN : Number(text);
  return Number.isInteger(number) && number >= least && number <= most ? number : undefined;
}

function pairOf(text: string): readonly [name: string, value: number] {
  const [name = "", value = ""] = text.split("=");
  return [name, Number(value)];
}

/** What is wrong with a snapshot's name as one sentence, or `undefined`. */
export const snapshotNameProblem = (given: string): string | undefined =>
  parseSnapshotName(given) === undefined
    ? "a snapshot's name has 1 to 63 lower-case letters, digits, _, . and -, and begins with a letter or digit"
    : undefined;

export function parseSnapshotName(found: unknown): string | undefined {
  return typeof found === "string" && /^[a-z0-9][a-z0-9_.-]{0,62}$/.test(found) ? found : undefined;
}

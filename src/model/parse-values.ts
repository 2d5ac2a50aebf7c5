import {
  type Counts,
  type PlatformName,
  type Role,
  type Variant,
  type WebUi,
  roles,
  variants,
} from "./cluster-record.ts";
import * as read from "./reader.ts";
import { type Rule, numberOrDigits, wholeNumber } from "./rule.ts";

/**
 * Parsers for the values of a cluster record. They read every text that comes from outside: tags,
 * labels, API answers, files of older versions. Each takes anything and returns the value, or
 * `undefined` if it has another shape. A parsed value is safe in a path, in a line of configuration
 * and on a terminal, so that no other code has to check it.
 */

export const parseClusterId = read.matching(/^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}$/);

export const clusterIdRule: Rule<string> = {
  read: parseClusterId,
  what: 'a cluster id: use 1 to 63 letters, digits, "_", "." and "-", beginning with a letter or digit',
};

/** Ids that `once` generates for clusters that it removes. With shards, each has its number at the end. */
export const temporaryClusterIds = /^once-[0-9a-f]{8}(?:-[0-9]{1,2})?$/;

export const parseCreationId = read.matching(/^[0-9a-f]{16}$/);

export const parseRole: read.Reader<Role> = read.oneOf(...roles);

export const parseVariant: read.Reader<Variant> = read.oneOf(...variants, "none");

/** A path that begins with two slashes would name another host. */
export const parseWebUi = read.refined(
  read.matching(/^(?:none|https?(?::[1-9]\d{0,4}\/(?!\/)[A-Za-z0-9._~%/-]{0,199})?)$/),
  (text) => text as WebUi,
);

const platformPattern =
  /^([a-z0-9-]{1,40}) (-|\?|[1-9]\d{0,4}(?:,[1-9]\d{0,4}){0,99}) ([\p{L}\p{M}\p{N}\p{P}\p{S} ]{1,50})$/u;

/** A tag holds 256 characters, and a name and a version have 91 at most. */
const mostPortsLength = 160;

/** Returns `slurm 80,6817 24.05`, `-` for no ports and `?` for too many; undefined if it could not be read back. */
export function platformText({ name, version, ports = [] }: PlatformName): string | undefined {
  const list = ports.join(",") || "-";
  return parsePlatform(`${name} ${list.length > mostPortsLength ? "?" : list} ${version}`);
}

export const parsePlatform = read.matching(platformPattern);

/** Reads the text of `platformText`. */
export function platformNameOf(text: string): PlatformName | undefined {
  const [, name, list = "", version] = platformPattern.exec(text) ?? [];
  if (name === undefined || version === undefined) return undefined;
  const ports = list === "-" ? [] : list.split(",").map(Number);
  return { name, version, ...(list !== "?" && { ports }) };
}

/** A node's number within its role. A cluster has 1,000 nodes at most. */
export const parseIndex = numberOrDigits(wholeNumber(0, 999));

const parseCount = numberOrDigits(wholeNumber(0, 1000));

/** Node counts in JSON: `{ "master": 1, "agent": 2, "public_agent": 1 }`. */
export const parseCountsObject: read.Reader<Counts> = read.object({
  master: parseCount,
  agent: parseCount,
  public_agent: parseCount,
});

/** The requested number of nodes per role: `master=1 agent=2 public_agent=1`. */
export const parseCounts = read.refined(
  read.matching(/^master=\d{1,4} agent=\d{1,4} public_agent=\d{1,4}$/),
  (text) => parseCountsObject(Object.fromEntries(text.split(" ").map((pair) => pair.split("=")))),
);

/** `debian-12`, `own image`, or `image` with an image's name, such as `image registry.example.com/node:1`. */
export const parseDistribution = read.matching(
  /^[a-z0-9][a-z0-9.-]{0,62}$|^own image$|^image [A-Za-z0-9][A-Za-z0-9._/:@-]{0,499}$/,
);

/** A user's name on a node. `--ssh-user` accepts the same names. */
export const parseUserName = read.matching(/^[a-z_][a-z0-9_-]{0,31}$/);

/** RFC 3339, such as `2026-01-01T00:00:00.5Z`. */
export const parseMoment = read.refined(
  read.matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/),
  (text) => {
    const moment = new Date(text);
    return Number.isNaN(moment.getTime()) ? undefined : moment;
  },
);

/** Doesn't use `node:net`, which every start of a program would have to load. */
export const parseIpv4 = read.matching(
  /^(?:(?:\d|[1-9]\d|1\d\d|2[0-4]\d|25[0-5])(?:\.(?!$)|$)){4}$/,
);

export const port = wholeNumber(1, 65_535);

/** A TCP port, as a number or a text. */
export const parsePort = numberOrDigits(port);

/** `--cloud-region` accepts the same regions. Regions are also folders on this machine. */
export const parseRegion = read.matching(/^[a-z]{2,8}(?:-[a-z]{1,16}){1,3}-[0-9]{1,2}$/);

export const parseSnapshotName = read.matching(/^[a-z0-9][a-z0-9_.-]{0,62}$/);

export const snapshotNameRule: Rule<string> = {
  read: parseSnapshotName,
  what: 'a snapshot\'s name: use 1 to 63 lower-case letters, digits, "_", "." and "-", beginning with a letter or digit',
};

/** Reads `2g`, `512m` or plain megabytes; returns `undefined` for anything else. */
export function readMegabytes(text: string): number | undefined {
  const [, number, unit = ""] = /^([1-9][0-9]{0,8})([mgt]?)$/i.exec(text) ?? [];
  if (number === undefined) return undefined;
  return Number(number) * 1024 ** ["m", "g", "t"].indexOf(unit.toLowerCase() || "m");
}

import type { BackendOption } from "../../model/option-schema.ts";
import { readMegabytes } from "../../model/parse-values.ts";
import * as read from "../../model/reader.ts";

interface Limit extends BackendOption<string> {
  /** Its name in a plan. */
  readonly title: string;
  /** Reads it from labels and files, which anyone may have written: it becomes an argument of the engine. */
  readonly stored: read.Reader<string>;
}

/** Docker refuses less. */
const leastMemoryMegabytes = 6;

const parseCpus = (given: unknown): string | undefined =>
  typeof given === "string" && /^(?:[0-9]+\.)?[0-9]+$/.test(given) && Number(given) > 0
    ? given
    : undefined;

/**
 * The limits of every node, in the form of the engine's options, whose names they have. A row is
 * all that a limit needs: options, arguments, plans, labels, snapshots, copies and files carry
 * `Limits` whole.
 */
export const limitOptions = {
  memory: {
    title: "memory",
    summary: "Memory limit of each node, such as 2g; a number without a unit means megabytes",
    defaultText: "no limit",
    isNumeric: true,
    read: read.refined(read.string, (given) =>
      (readMegabytes(given) ?? 0) < leastMemoryMegabytes ? undefined : given.replace(/\d$/, "$&m"),
    ),
    what: `a size of at least ${leastMemoryMegabytes} MB, such as 512m or 2g`,
    // Any size that the engine accepts, because earlier versions passed on bytes.
    stored: read.matching(/^[1-9][0-9]{0,15}[bkmgt]?$/i),
  },
  cpus: {
    title: "CPUs",
    summary: "CPU limit of each node, such as 1.5",
    defaultText: "no limit",
    isNumeric: true,
    read: parseCpus,
    what: "a number of CPUs such as 2 or 0.5",
    stored: parseCpus,
  },
} as const satisfies Readonly<Record<string, Limit>>;

/** Has every limit, also those that aren't set, so that none is forgotten. */
export type Limits = { readonly [Name in keyof typeof limitOptions]: string | undefined };

const names = Object.keys(limitOptions) as readonly (keyof Limits)[];

/** Returns the limits among other values. */
export const limitsOf = (values: Partial<Limits>): Limits =>
  Object.fromEntries(names.map((name) => [name, values[name]])) as Limits;

/** The fields of a stored object, for `limitsOf`. */
export const limitFields = Object.fromEntries(
  names.map((name) => [name, read.optional(limitOptions[name].stored)]),
) as Readonly<Record<keyof Limits, ReturnType<typeof read.optional<string>>>>;

export const limitWords = (limits: Limits): readonly string[] =>
  names.flatMap((name) => {
    const flag = name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    return limits[name] === undefined ? [] : [`--${flag}=${limits[name]}`];
  });

/** `shown`: such as `memory: 2g, CPUs: no limit`, with these texts after a title and for a limit that isn't set. */
export const limitsText = (
  limits: Limits,
  shown: { readonly after: string; readonly none: string },
): string =>
  names
    .map((name) => `${limitOptions[name].title}${shown.after}${limits[name] ?? shown.none}`)
    .join(", ");

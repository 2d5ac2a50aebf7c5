import { runCommand } from "../../references.ts";
import { type Outcome, pass, warn } from "../../model/check.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { abandonedCreations, isCreationUnderWay } from "../../store/creation-folder.ts";
import { endText } from "../../system/amounts.ts";
import type { Clock } from "../../system/runtime.ts";
import { isOver } from "./lifetimes.ts";
import {
  parseClusterId,
  parseCounts,
  parseCreationId,
  parseDistribution,
  parseIndex,
  parseMoment,
  parsePlatform,
  parseRole,
  parseUserName,
  parseVariant,
  parseWebUi,
} from "../../model/parse-values.ts";

/** A thing with our tags or labels whose values don't fit. No command changes it; `doctor` and `-v` report it. */
export interface ForeignResource {
  /** A printable text, such as `instance i-0123456789abcdef0`. */
  readonly what: string;
  /** A printable text, such as `its tag cluster-e2e:role is missing`. It holds names of tags, never their values. */
  readonly why: string;
}

export const foreignResourceText = ({ what, why }: ForeignResource): string =>
  `Ignored, because this program did not create it in this form: ${what}: ${why}.`;

export interface Reading<Own> {
  readonly read: readonly Own[];
  readonly foreignResources: readonly ForeignResource[];
}

/**
 * Sorts things of a kind. `readOne` returns what is wrong with one that isn't ours, and `nameOf` a
 * printable name for it.
 */
export function readEach<Found, Own extends object>(
  kind: string,
  found: readonly Found[],
  readOne: (one: Found) => Own | string,
  nameOf: (one: Found) => string,
): Reading<Own> {
  const results = found.map((one) => ({ one, result: readOne(one) }));
  return {
    read: results.map(({ result }) => result).filter((result) => typeof result !== "string"),
    foreignResources: results.flatMap(({ one, result }) =>
      typeof result === "string" ? [{ what: `${kind} ${nameOf(one)}`, why: result }] : [],
    ),
  };
}

/** Makes any foreign id safe to print. */
export const shownId = (id: unknown): string =>
  (String(id).match(/[\w.:-]/g) ?? []).slice(0, 80).join("");

/**
 * Adds things that only look like ours to the outcome of `doctor`'s leftovers check. `advice` says
 * what to do about them.
 */
export function withForeignResources(
  outcome: Outcome,
  foreignResources: readonly ForeignResource[],
  advice: string,
): Outcome {
  if (foreignResources.length === 0) return outcome;
  const things = foreignResources.map(({ what, why }) => `${what}: ${why}`).join("; ");
  const message = `Resembles a part of a cluster, but this program did not create it in this form and ignores it: ${things}.`;
  return withFinding(outcome, message, advice);
}

/** Adds one more problem, and what to do about it, to the outcome of a check. */
export function withFinding(outcome: Outcome, message: string, remedy: string): Outcome {
  if (!("remedy" in outcome)) return warn(message, remedy);
  return {
    ...outcome,
    message: `${outcome.message} ${message}`,
    remedy: `${outcome.remedy}; ${remedy}`,
  };
}

interface LeftoversRequest {
  readonly clusters: readonly ClusterRecord[];
  /** The folder of this machine's creations. */
  readonly root: string;
  readonly clock: Clock;
  readonly removal: (clusterId: string) => string;
  /** Returns any other problem that a backend finds with a running cluster. */
  readonly troubleOf: (cluster: ClusterRecord) => Promise<string | undefined>;
}

/**
 * Reports, for `doctor`, what interrupted creates left behind, clusters that have nothing running, and what is left of
 * clusters whose time is over.
 */
export async function leftovers(request: LeftoversRequest): Promise<Outcome> {
  const { clusters, clock, removal } = request;
  const present = clusters.filter((cluster) => !isOver(cluster, clock));
  const judged = await Promise.all(
    present.map(async (cluster) => ({ cluster, what: await whatIsLeft(cluster, request) })),
  );
  const left = judged.filter(({ what }) => what !== undefined);
  const outcome =
    left.length === 0
      ? pass("None")
      : warn(
          `Left over: ${left.map(({ cluster, what }) => `cluster "${cluster.id}" (${what})`).join(", ")}.`,
          `Remove those that you no longer need: ${left.map(({ cluster }) => removal(cluster.id)).join("; ")}`,
        );
  const expired = clusters.flatMap(({ id, expiresAt }) =>
    expiresAt === undefined || !isOver({ expiresAt }, clock)
      ? []
      : [`cluster "${id}", which ended ${endText(expiresAt, clock.now())}`],
  );
  if (expired.length === 0) return outcome;
  const message = `Not removed yet: ${expired.join("; ")}.`;
  return withFinding(outcome, message, `${runCommand("list")}, which removes what is left`);
}

async function whatIsLeft(
  cluster: ClusterRecord,
  { root, troubleOf }: LeftoversRequest,
): Promise<string | undefined> {
  const abandoned = await abandonedCreations(root, cluster.id);
  const found = abandoned.find(({ creation }) => creation.creationId === cluster.creationId);
  if (found !== undefined)
    return found.creation.state === "in-use" ? "its once was killed" : "its create was interrupted";
  const hasNodes = cluster.nodes.length > 0;
  if (hasNodes && cluster.nodes.every((node) => node.state === "ended"))
    return "none of its nodes is running";
  const trouble = await troubleOf(cluster);
  if (hasNodes || trouble !== undefined) return trouble;
  // For example, only a network exists. A creation also begins like this.
  return (await isCreationUnderWay(cluster.directory)) ? undefined : "it has no nodes";
}

/** The parsers of the texts in tags and labels, by our own names for these. */
export const textParsers = {
  clusterId: parseClusterId,
  counts: parseCounts,
  creationId: parseCreationId,
  distribution: parseDistribution,
  expiresAt: parseMoment,
  index: parseIndex,
  indexBase: parseIndex,
  platform: parsePlatform,
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

/** Returns the parsed values, or a text that names missing and malformed ones. Optional texts may be missing. */
export function readTexts<Required extends TextName, Optional extends TextName>(
  { kind, names, texts }: FoundTexts,
  {
    required,
    optional,
  }: { readonly required: readonly Required[]; readonly optional: readonly Optional[] },
):
  | ({ readonly [Name in Required]: TextValue<Name> } & {
      readonly [Name in Optional]: TextValue<Name> | undefined;
    })
  | string {
  const valueOf = (name: TextName): unknown => textParsers[name](texts[name]);
  const faults = [
    ...required.filter((name) => valueOf(name) === undefined),
    ...optional.filter((name) => valueOf(name) === undefined && texts[name] !== undefined),
  ];
  const faultOf = (name: TextName): string =>
    texts[name] === undefined ? "is missing" : "is malformed";
  if (faults.length > 0)
    return faults.map((name) => `its ${kind} ${names[name]} ${faultOf(name)}`).join(", ");
  return Object.fromEntries(
    [...required, ...optional].map((name) => [name, valueOf(name)]),
  ) as never;
}

/**
 * Throws unless every value can be read back: no command would list or remove a machine whose tags
 * don't parse. The options were checked before, so such a value is a bug.
 */
export function assertReadable(texts: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(texts)) {
    if (value === undefined || (isTextName(name) && textParsers[name](value) === undefined)) {
      throw new TypeError(
        `No command could read this creation: its ${name} would be ${JSON.stringify(value)}`,
      );
    }
  }
}

const isTextName = (name: string): name is TextName => Object.hasOwn(textParsers, name);

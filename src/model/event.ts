/**
 * The events of a cluster's life, one JSON object a line in `events.jsonl`. This is the only place
 * that declares their fields: whatever writes or reads events takes the types and readers from
 * here.
 */
import * as read from "./reader.ts";

const node = read.matching(/^[a-z_]{1,30}_\d{1,5}$/);
const nodes = read.list(node);
const text = read.string;
const course = read.oneOf("begun", "done", "failed");
export type Course = read.ValueOf<typeof course>;

/** ISO, in UTC, by the clock of the computer that ran the command. */
const atShape = read.matching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
const at: read.Reader<string> = (found) => {
  const time = atShape(found);
  return time === undefined || Number.isNaN(Date.parse(time)) ? undefined : time;
};

const kinds = {
  /** A step of a command. Two events belong together if title and subject are equal. */
  phase: { title: text, subject: read.optional(text), course, text: read.optional(text) },
  node: { node, state: text, text: read.optional(text) },
  power: { action: text, nodes, course },
  fault: {
    id: read.matching(/^[0-9a-f]{8}$/),
    fault: text,
    text,
    nodes,
    course: read.oneOf("begun", "shown", "healed", "failed"),
    /** `healed`: whether the nodes healed it when its time was over, or a command did. */
    by: read.optional(read.oneOf("nodes", "command")),
    seconds: read.optional(read.number),
  },
  /**
   * A command on nodes, or on this computer if there are none, secrets masked. `status` is the
   * highest of all nodes; without it, `text` says why there is none. `output`: the last lines, if
   * the secrets in them were known.
   */
  run: {
    command: text,
    nodes,
    course,
    status: read.optional(read.integer),
    text: read.optional(text),
    output: read.optional(read.list(text)),
  },
  /** The verdict on a node, whenever it changes. */
  check: { node, isReady: read.boolean, text },
  /** The command line that made the cluster, secrets masked. */
  command: { line: text },
  upgrade: { version: text, course },
  /** `nodes`: those that are put back. */
  snapshot: { action: text, name: text, nodes: read.optional(nodes), course },
  clock: { node, offsetMs: read.number },
  /** `explanation`: why it doesn't count, a fault's description or the option that ignores it. */
  noticed: {
    node,
    what: text,
    text,
    isExplained: read.optional(read.boolean),
    explanation: read.optional(text),
  },
  /** How a command ended that created a cluster or used it. */
  result: { title: text, isGood: read.boolean, text },
} as const;

type Kinds = typeof kinds;

/** An event without its time. */
export type NewEvent = {
  [Kind in keyof Kinds]: { readonly kind: Kind } & read.FieldValues<Kinds[Kind]>;
}[keyof Kinds];

export type ClusterEvent = NewEvent & { readonly at: string };

/** Returns undefined for an event of another shape or of a kind that a newer program writes. */
export function readEvent(found: unknown): ClusterEvent | undefined {
  const kind = read.field("kind", read.string)(found);
  if (kind === undefined || !Object.hasOwn(kinds, kind)) return undefined;
  const fields: Kinds[keyof Kinds] = kinds[kind as keyof Kinds];
  const own = read.object({ at, kind: read.oneOf(kind), ...fields })(found);
  return own as ClusterEvent | undefined;
}

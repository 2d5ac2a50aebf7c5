import type { Backend } from "../../backend/contract.ts";
import type { Context } from "../../cli/command.ts";
import { recordFailure } from "../../cluster/events/record-event.ts";
import { findCluster } from "../../cluster/find-cluster.ts";
import { type Ignored, type Trouble, startWatch } from "../../cluster/watch/start-watch.ts";
import { ClusterError } from "../../errors.ts";
import { optionName } from "../../references.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import type { TroubleView } from "../json-results.ts";
import { numbered } from "../../system/amounts.ts";

export interface WatchInput {
  readonly ignore: readonly Ignored[];
  /** Called for each trouble at once. */
  readonly onTrouble?: ((trouble: Trouble) => void) | undefined;
}

export interface Watched {
  /** Waits for what the nodes still have to say, and returns what went wrong on them. */
  readonly findTroubles: () => Promise<readonly Trouble[]>;
  /** Whether the secrets of the nodes are known, and masked. */
  readonly knowsSecrets: boolean;
}

/**
 * Runs a command while its cluster's nodes are watched. Resolves with its status, and throws
 * `trouble-noticed` if it is 0 in spite of troubles.
 */
export async function withWatch(
  { backend, cluster }: { readonly backend: Backend<unknown>; readonly cluster: ClusterRecord },
  { ignore, onTrouble }: WatchInput,
  context: Context,
  command: (watched: Watched) => Promise<number>,
): Promise<number> {
  if (ignore.some(({ kind, pattern }) => kind === "all" && pattern === undefined))
    return await command({ findTroubles: async () => [], knowsSecrets: false });
  const request = {
    cluster,
    ignored: ignore,
    find: (signal: AbortSignal) => findCluster(backend, cluster.id, signal),
    onTrouble: (trouble: Trouble) => {
      context.progress.warn(lineOf(trouble));
      onTrouble?.(trouble);
    },
  };
  await using watch = await startWatch(context, request);
  const { end: findTroubles, knowsSecrets } = watch;
  const status = await command({ findTroubles, knowsSecrets });
  const troubles = await watch.end();
  if (status !== 0 || troubles.length === 0) return status;
  const error = troubleNoticed(troubles);
  recordFailure(cluster.directory, "run", error, context);
  throw error;
}

const mostShown = 20;

const lineOf = ({ node, at, what, text }: Trouble): string =>
  `${node}, ${at.slice(11, 19)} UTC: ${what}: ${text}`;

/** A line for each, in front of which the line of the message ends. */
export function troubleLines(troubles: readonly Trouble[]): string {
  const lines = troubles.slice(0, mostShown).map((each) => `\n  ${lineOf(each)}`);
  const more = troubles.length - lines.length;
  return `${lines.join("")}${more > 0 ? `\n  and ${more} more` : ""}`;
}

function troubleNoticed(troubles: readonly Trouble[]): ClusterError {
  const count = troubles.length === 1 ? "something" : numbered(troubles.length, "thing");
  const kinds = [...new Set(troubles.map(({ kind }) => kind))];
  return new ClusterError(
    "trouble-noticed",
    `The command succeeded, but ${count} went wrong on the nodes while it ran:${troubleLines(troubles)}`,
    {
      hint: `Look at the nodes' logs, or pass ${optionName("ignore")} with ${kinds.join(" or ")} if that is expected.`,
      facts: { troubles: troubles.map(troubleFacts) },
    },
  );
}

/** A trouble as JSON has it. */
export const troubleFacts = ({ node, at, kind, text }: Trouble): TroubleView => ({
  node,
  at,
  kind,
  text,
});

import type { Backend, BackendKind } from "../backend/contract.ts";
import { defineCommand, type Context } from "../cli/command.ts";
import { flag, type Option } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/value-types.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { plainLine } from "../system/printable.ts";
import { endsByItself, placeOptions } from "./backend-options.ts";

export const listCommand = (kind: BackendKind) =>
  defineCommand({
    name: "list",
    summary: "List all clusters",
    description: `Show every cluster with its state, its machines and ${endsByItself(kind) ? "the time it has left" : "its age, and the time it has left if it has a lifetime"}. The state describes the machines only: run \`wait\` to find out whether the platform is ready.`,
    positionals: {},
    options: {
      ...placeOptions(kind),
      ...allPlacesOption(kind),
      quiet: flag({ flag: "--quiet", short: "-q", summary: "Print only the cluster ids, one per line" }),
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "list", summary: "List all clusters" },
      { words: "list --output json", summary: "List all clusters as JSON, for a program to read" },
    ],
    run: async (input, context) => {
      const { clusterView, listText } = await import("./cluster-view.ts");
      const backend = await kind.open(input, context, context.signal);
      const isOfAllPlaces = input.allPlaces;
      const [clusters] = await Promise.all([
        findClusters(backend, isOfAllPlaces, context),
        // Completion asks for ids, and nobody waits for it.
        input.quiet ? undefined : backend.removeExpired?.(context.signal),
      ]);
      const views = clusters.map((cluster) => clusterView(cluster, context.clock.now()));
      if (clusters.length === 0) context.progress.note(`No clusters${isOfAllPlaces ? "" : placeText(backend)}.`);
      context.output.result({
        text: input.quiet
          ? clusters.map((cluster) => plainLine(cluster.id)).join("\n")
          : listText(views, { isOfAllPlaces, endsByItself: endsByItself(kind), columns: context.columns }),
        data: { clusters: views },
      });
    },
  });

/** Such as `--all-regions`. The type has the option for every program, so that its value is `undefined` where it isn't declared. */
function allPlacesOption(kind: BackendKind): { readonly allPlaces: Option<boolean> } {
  const { allPlaces: summary } = kind.parts;
  const [place = "place"] = Object.keys(placeOptions(kind));
  const options = summary === undefined ? {} : { allPlaces: flag({ flag: `--all-${place}s`, summary }) };
  return options as { readonly allPlaces: Option<boolean> };
}

async function findClusters(
  backend: Backend<unknown>,
  isOfAllPlaces: boolean,
  { progress, signal }: Context,
): Promise<readonly ClusterRecord[]> {
  const { place } = backend;
  if (!isOfAllPlaces || place?.listAll === undefined) return backend.list(signal);
  const { clusters, unreachable } = await place.listAll(signal);
  for (const each of unreachable) progress.warn(`cannot list the clusters in ${each.place}: ${each.reason}`);
  return clusters;
}

const placeText = ({ place }: Backend<unknown>): string =>
  place === undefined ? "" : ` in ${place.kind} ${place.name}`;

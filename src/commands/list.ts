import type { Backend, BackendKind } from "../backend/contract.ts";
import { defineCommand, type Context } from "../cli/command.ts";
import { flag } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/value-types.ts";
import { plainLine } from "../system/printable.ts";
import { declaredIf, endsByItself, scopeOptions } from "./backend-options.ts";
import type { JsonResults } from "./json-results.ts";

export const listCommand = (kind: BackendKind) =>
  defineCommand({
    name: "list",
    summary: "List all clusters",
    description: `Show every cluster with its state, its machines and ${endsByItself(kind) ? "the time it has left" : "its age, and the time it has left if it has a lifetime"}. The state describes the machines only: run \`wait\` to find out whether the platform is ready.`,
    options: {
      ...scopeOptions(kind),
      ...allScopesOptions(kind),
      quiet: flag({
        flag: "--quiet",
        short: "-q",
        summary: "Print only the cluster ids, one per line",
      }),
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "list", summary: "List all clusters" },
      { words: "list --output json", summary: "List all clusters as JSON, for a program to read" },
    ],
    run: async (input, context) => {
      const { clusterView, listText } = await import("./cluster-view.ts");
      const backend = await kind.open(context, input);
      const isOfAllScopes = input.allScopes;
      const [{ clusters, ...others }] = await Promise.all([
        findClusters(backend, isOfAllScopes, context),
        // Completion lists ids with --quiet, and must not wait for removals.
        input.quiet ? undefined : backend.local?.removeExpired(context.signal),
      ]);
      const views = clusters.map((cluster) => clusterView(cluster, context.clock.now()));
      if (clusters.length === 0)
        context.progress.note(`No clusters${isOfAllScopes ? "" : scopeText(backend)}.`);
      context.output.result({
        text: input.quiet
          ? clusters.map((cluster) => plainLine(cluster.id)).join("\n")
          : listText(views, {
              isOfAllScopes,
              endsByItself: endsByItself(kind),
              columns: context.columns,
            }),
        data: { clusters: views, ...others } satisfies JsonResults["list"],
      });
    },
  });

/** The option that lists the clusters of all scopes, such as `--all-regions`. */
function allScopesOptions(kind: BackendKind) {
  const summary = kind.local === undefined ? kind.cloud.allScopes : undefined;
  const [scope] = Object.keys(scopeOptions(kind));
  return declaredIf(summary !== undefined, {
    allScopes: flag({ flag: `--all-${scope}s`, summary: summary ?? "" }),
  });
}

async function findClusters(
  backend: Backend<unknown>,
  isOfAllScopes: boolean,
  { progress, signal }: Context,
) {
  const { scope, cloud } = backend;
  if (!isOfAllScopes || scope === undefined || cloud === undefined)
    return { clusters: await backend.list(signal) };
  const { clusters, unreachable } = await cloud.listAll(signal);
  for (const each of unreachable)
    progress.warn(`cannot list the clusters in ${each.scope}: ${each.reason}`);
  return {
    clusters,
    unreachable: unreachable.map(({ scope: name, reason }) => ({ [scope.kind]: name, reason })),
  };
}

const scopeText = ({ scope }: Backend<unknown>): string =>
  scope === undefined ? "" : ` in ${scope.kind} ${scope.name}`;

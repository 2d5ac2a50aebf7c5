import type { Backend } from "../backend/contract.ts";
import { defineCommand } from "../cli/command.ts";
import type { Context } from "../cli/context.ts";
import { flag } from "../cli/options/option.ts";
import { outputFormat, verbose } from "../cli/options/value-types.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { plainLine } from "../system/printable.ts";
import { clusterView, durationText, tableText } from "./cluster-view.ts";
import type { ClusterView } from "./cluster-view.ts";
import type { Driver } from "./driver.ts";

export const listCommand = (driver: Driver) =>
  defineCommand({
    name: "list",
    summary: "List all clusters",
    description: `Show every cluster with its state, its machines and ${driver.hasLifetime ? "the time it has left" : "its age"}. The state describes the machines only: run \`wait\` to find out whether the platform is ready.`,
    positionals: {},
    options: {
      ...driver.placeOptions,
      ...(driver.everywhere !== undefined && { everywhere: driver.everywhere }),
      quiet: flag({ flag: "--quiet", short: "-q", summary: "Print only the cluster ids, one per line" }),
      output: outputFormat(["text", "json"]),
      verbose,
    },
    examples: [
      { words: "list", summary: "List all clusters" },
      { words: "list --output json", summary: "List all clusters as JSON, for a program to read" },
    ],
    run: async (input, context) => {
      const backend = await driver.open(input, context, context.signal);
      const isEverywhere = input.everywhere === true;
      const clusters = await findClusters(backend, isEverywhere, context);
      const views = clusters.map((cluster) => clusterView(cluster, context.clock.now()));
      if (clusters.length === 0) context.progress.note(`No clusters${isEverywhere ? "" : placeText(backend)}.`);
      context.output.result({
        text: input.quiet
          ? clusters.map((cluster) => plainLine(cluster.id)).join("\n")
          : listText(views, isEverywhere, driver),
        data: { clusters: views },
      });
    },
  });

async function findClusters(
  backend: Backend<unknown>,
  isEverywhere: boolean,
  { progress, signal }: Context,
): Promise<readonly ClusterRecord[]> {
  if (!isEverywhere || backend.listEverywhere === undefined) return backend.list(signal);
  const { clusters, unreachable } = await backend.listEverywhere(signal);
  for (const { place, reason } of unreachable) progress.warn(`cannot list the clusters in ${place}: ${reason}`);
  return clusters;
}

const placeText = ({ place }: Backend<unknown>): string =>
  place === undefined ? "" : ` in ${place.kind} ${place.name}`;

function listText(views: readonly ClusterView[], isEverywhere: boolean, { hasLifetime }: Driver): string {
  if (views.length === 0) return "";
  const head = ["ID", "STATE", "VARIANT", "MASTERS", "AGENTS", "PUBLIC AGENTS", "AGE"];
  const lifetimeHead = hasLifetime ? ["TIME LEFT", "COST AT MOST"] : [];
  const regionOf = (view: ClusterView): readonly string[] => (isEverywhere ? [view.region ?? "–"] : []);
  return tableText([
    [...(isEverywhere ? ["REGION"] : []), ...head, ...lifetimeHead],
    ...views.map((view) => [...regionOf(view), ...row(view), ...(hasLifetime ? lifetimeCells(view) : [])]),
  ]);
}

function row(view: ClusterView): string[] {
  return [
    view.id,
    view.state,
    view.variant,
    String(view.counts.masters),
    String(view.counts.agents),
    String(view.counts.publicAgents),
    view.ageSeconds === undefined ? "–" : durationText(view.ageSeconds),
  ];
}

function lifetimeCells(view: ClusterView): string[] {
  return [
    view.secondsLeft === undefined ? "–" : durationText(view.secondsLeft),
    view.maximumCostDollars === undefined ? "–" : `$${view.maximumCostDollars.toFixed(2)}`,
  ];
}

import type { CloudKind } from "../../backend/contract.ts";
import { defineCommand } from "../../cli/command.ts";
import { argument, flag, option } from "../../cli/options/option.ts";
import { text } from "../../cli/options/value-types.ts";
import type { JsonResults } from "../json-results.ts";
import { clusterOptions } from "../options.ts";

const admitOptions = {
  list: flag({ flag: "--list", summary: "Show who is admitted, and change nothing" }),
  remove: option(text, {
    flag: "--remove",
    placeholder: "<cidr>",
    summary: "Address range to stop admitting",
  }),
};

export const admitCommand = (kind: CloudKind) =>
  defineCommand({
    name: "admit",
    summary: "Let a computer reach a cluster",
    description: kind.cloud.admission,
    positionals: {
      range: argument(text, {
        name: "CIDR",
        summary: "Address or address range such as 192.0.2.0/24; 0.0.0.0/0 admits everyone",
        defaultText: "this computer's public address",
      }),
    },
    options: clusterOptions(kind, admitOptions),
    examples: [
      { words: "admit -c nightly", summary: "Let this computer reach the cluster `nightly`" },
      { words: "admit -c nightly 192.0.2.0/24", summary: "Let a whole network reach it" },
      { words: "admit -c nightly --remove 192.0.2.0/24", summary: "Stop admitting that network" },
    ],
    check: ({ range, list: isList, remove }, problems) => {
      const given = [
        range !== undefined && "CIDR",
        isList && "--list",
        remove !== undefined && "--remove",
      ];
      const named = given.filter((name) => typeof name === "string");
      if (named.length > 1) problems.add(`${named.join(" and ")}: cannot be combined`);
    },
    run: async (input, context) => {
      const [{ findCluster }, { publicPorts }, { table }] = await Promise.all([
        import("../../cluster/find-cluster.ts"),
        import("../../platform/layouts/find-layout.ts"),
        import("../../cli/layout.ts"),
      ]);
      const { clusterId, range, list: isList, remove } = input;
      const { output, columns, progress, signal } = context;
      const backend = await kind.open(context, input);
      const { admission } = backend.cloud;
      const cluster = await findCluster(backend, clusterId, signal);
      if (isList) {
        const ranges = await admission.list(cluster, signal);
        if (ranges.length === 0) progress.note(`No address is admitted to cluster "${clusterId}".`);
        const rows = ranges.map((each) => [each.range, each.ports.join(", ")]);
        const shown = rows.length === 0 ? "" : table([["CIDR", "PORTS"], ...rows], columns);
        return output.result({ text: shown, data: { ranges } satisfies JsonResults["admit"] });
      }
      if (remove !== undefined) {
        const removed = await admission.remove(cluster, remove, signal);
        return output.result({ text: removed, data: { removed } satisfies JsonResults["admit"] });
      }
      const admitted = await admission.admit(cluster, { range, openPorts: publicPorts }, signal);
      output.result({ text: admitted, data: { admitted } satisfies JsonResults["admit"] });
    },
  });

import { defineCommand } from "../cli/command.ts";
import { argument, BadValue } from "../cli/options/option.ts";
import { value } from "../cli/options/value-types.ts";
import type { BackendKind } from "../backend/contract.ts";
import { parsePort } from "../model/parse-values.ts";
import type { JsonResults } from "./json-results.ts";
import { clusterOptions, nodeNames, oneNode } from "./options.ts";

const ports = value(async (given) => {
  const [, local, remote] = /^(?:(\d+):)?(\d+)$/.exec(given) ?? [];
  const port = parsePort(remote);
  const localPort = local === undefined ? 0 : parsePort(local);
  if (port === undefined || localPort === undefined)
    throw new BadValue("use a port such as 8080, or LOCAL:PORT such as 9090:8080");
  return { port, localPort };
});

export const forwardCommand = (kind: BackendKind) =>
  defineCommand({
    name: "forward",
    summary: "Forward a port of this computer to a port of a node",
    description:
      "Listen on 127.0.0.1, and forward each connection over SSH to the port of the node, until Ctrl-C. Without LOCAL, take any port that is free here. Print the address. Programs on the node see connections from the node itself. Everyone on this computer can connect meanwhile.",
    positionals: {
      node: argument(oneNode(kind.machineId), {
        name: "NODE",
        summary: "The node, as for `run --node`",
        completeWith: nodeNames,
        required: true,
      }),
      ports: argument(ports, {
        name: "PORT",
        summary: "The node's port; LOCAL:PORT chooses the port of 127.0.0.1 as well",
        required: true,
      }),
    },
    options: clusterOptions(kind, {}),
    examples: [
      { words: "forward master_0 8080", summary: "Reach port 8080 of a master from here" },
      { words: "forward agent_0 9090:80", summary: "Reach port 80 of an agent at port 9090" },
    ],
    run: async (input, context) => {
      const [{ findCluster, findNode }, { forwardToNode }, { orAborted, untilAborted }] =
        await Promise.all([
          import("../cluster/find-cluster.ts"),
          import("../cluster/connections.ts"),
          import("../system/time-limit.ts"),
        ]);
      const { signal } = context;
      const backend = await kind.open(context, input);
      const cluster = await findCluster(backend, input.clusterId, signal);
      const node = findNode(cluster, input.node);
      await using open = await forwardToNode(context, cluster, { node, ...input.ports });
      const { localPort } = open;
      context.output.result({
        text: `127.0.0.1:${localPort}`,
        data: { host: "127.0.0.1", port: localPort } satisfies JsonResults["forward"],
        isAtOnce: true,
      });
      context.progress.note("The port is open until Ctrl-C.");
      await untilAborted(orAborted(new Promise<never>(() => {}), signal), signal);
    },
  });

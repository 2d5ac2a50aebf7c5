import { runCommand } from "../references.ts";
import type { BackendKind } from "../backend/contract.ts";
import { type Context, defineCommand } from "../cli/command.ts";
import { argument, flag, listArgument } from "../cli/options/option.ts";
import { choice } from "../cli/options/value-types.ts";
import type { PowerAction, PowerRequest } from "../cluster/power.ts";
import type { JsonResults } from "./json-results.ts";
import { declaredIf } from "./backend-options.ts";
import { clusterOptions, nodeNames, nodeSelector } from "./options.ts";

const actions: readonly PowerAction[] = ["stop", "start", "restart", "pause", "resume"];
const restartOnly =
  "Nodes can only be restarted: an instance that shuts down terminates, and one that others stop would outlive its deadline.";

const actionsOf = ({ local }: BackendKind): readonly PowerAction[] =>
  local === undefined ? ["restart"] : actions;
const returnsOfActions =
  "Nodes that are in the wanted state already stay as they are; to pause or resume a stopped node is an error, except for those of a group. `start`, `restart` and `resume` return";
const force = flag({
  flag: "--force",
  summary: "Cut the power instead of shutting down",
});

export const nodeCommand = (kind: BackendKind) =>
  defineCommand({
    name: "node",
    summary:
      kind.local === undefined ? "Restart nodes" : "Stop, start, restart, pause or resume nodes",
    description: `${kind.local?.power ?? restartOnly} Nodes keep their names, addresses, keys and disks. ${kind.local === undefined ? "The command returns" : returnsOfActions} when the nodes accept logins; run \`wait\` to find out when the platform is ready again.`,
    positionals: {
      action: argument(choice(actionsOf(kind)), {
        name: "ACTION",
        summary: `What to do: ${actionsOf(kind).join(", ")}`,
        required: true,
      }),
      nodes: listArgument(nodeSelector(kind.machineId), {
        name: "NODE",
        summary:
          "Nodes: addresses, machine ids, names such as agent_0, or all, masters, agents, public_agents",
        completeWith: nodeNames,
      }),
    },
    options: clusterOptions(kind, declaredIf(kind.local !== undefined, { force })),
    examples: [
      ...(kind.local === undefined
        ? []
        : [{ words: "node stop --force agent_0", summary: "Cut the power of an agent" }]),
      { words: "node restart masters", summary: "Shut the masters down and start them again" },
    ],
    check: ({ action, force: isForced }, problems) => {
      if (isForced === true && action !== undefined && action !== "stop" && action !== "restart")
        problems.add(`--force: ${action} takes no --force`);
    },
    run: async ({ action, nodes, force: isForced, ...input }, context) =>
      change(kind, { action, nodes, isForced, ...input }, context),
  });

export const stopCommand = (kind: BackendKind) =>
  defineCommand({
    name: "stop",
    summary: "Stop all nodes of a cluster",
    description:
      "Shut down all nodes, which keep their disks, names, addresses and keys. `start` boots them again; `destroy` removes them.",
    options: clusterOptions(kind, { force }),
    examples: [{ words: "stop -c nightly", summary: "Stop the cluster `nightly`" }],
    run: async ({ force: isForced, ...input }, context) =>
      change(kind, { action: "stop", nodes: ["all"], isForced, ...input }, context),
  });

export const startCommand = (kind: BackendKind) =>
  defineCommand({
    name: "start",
    summary: "Start the stopped nodes of a cluster",
    description:
      "Start all stopped nodes and let paused ones continue, also after a restart of this computer. The command returns when they accept logins; run `wait` to find out when the platform is ready again.",
    options: clusterOptions(kind, {}),
    examples: [{ words: "start -c nightly", summary: "Start the cluster `nightly`" }],
    run: async (input, context) =>
      change(kind, { action: "start", nodes: ["all"], isForced: false, ...input }, context),
  });

async function change(
  kind: BackendKind,
  input: PowerRequest & Readonly<Record<string, unknown>>,
  context: Context,
) {
  const [{ changePower }, { nodeReference }] = await Promise.all([
    import("../cluster/power.ts"),
    import("../model/cluster-record.ts"),
  ]);
  const backend = await kind.open(context, input);
  const { cluster, hasBooted } = await changePower(context, backend, input);
  if (hasBooted)
    context.progress.note(
      `The nodes boot. ${runCommand("wait")} to find out when the platform is ready.`,
    );
  const nodes = cluster.nodes.map((node) => ({
    reference: nodeReference(node),
    state: node.state,
  }));
  context.output.result({
    text: "",
    data: {
      cluster: { id: cluster.id, state: cluster.state },
      nodes,
    } satisfies JsonResults["node"],
  });
}

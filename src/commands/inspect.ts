import { defineCommand } from "../cli/command.ts";
import { outputFormat, verbose } from "../cli/options/value-types.ts";
import type { ClusterRecord } from "../model/cluster-record.ts";
import { type ClusterView, type NodeView, clusterView, durationText, nodeView, tableText } from "./cluster-view.ts";
import type { BackendKind } from "../backend/contract.ts";
import { placeOptions } from "./backend-options.ts";
import { clusterId } from "./options.ts";

export const inspectCommand = (kind: BackendKind) =>
  defineCommand({
    name: "inspect",
    summary: "Show the details of a cluster",
    description: `Show the nodes with their IP addresses, the path of the SSH key for all nodes${kind.hasLifetime ? ", the web UI's URL and the time left" : ", and the web UI's URL"}. With \`--output ssh-config\`, print an SSH configuration: ssh and scp accept it with \`-F FILE\`, rsync with \`-e "ssh -F FILE"\`.`,
    positionals: {},
    options: { clusterId, ...placeOptions(kind), output: outputFormat(["text", "json", "ssh-config"]), verbose },
    examples: [
      { words: "inspect -c nightly", summary: "Show the nodes of the cluster `nightly`" },
      {
        words: "inspect --output ssh-config > cluster.ssh",
        summary: "Save an SSH configuration for `ssh -F cluster.ssh master_0`",
      },
    ],
    run: async (input, context) => {
      const { findCluster } = await import("../cluster/find-cluster.ts");
      const { sshConfig } = await import("../cluster/connections.ts");
      const backend = await kind.open(input, context, context.signal);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      const facts = await inspectFacts(cluster, context.clock.now());
      context.output.result({
        text: input.output === "ssh-config" ? await sshConfig(cluster) : inspectText(facts),
        data: { cluster: facts },
      });
    },
  });

interface Facts extends ClusterView {
  readonly sshKey: { readonly path: string; readonly isHere: boolean };
  /** Absent while no master has an address; null: the platform has none. */
  readonly webUi?: string | null;
  readonly nodes: readonly NodeView[];
}

async function inspectFacts(cluster: ClusterRecord, nowMs: number): Promise<Facts> {
  const { clusterKey } = await import("../cluster/connections.ts");
  const { expectedWebUrl, hasNoWebUi } = await import("../cluster/web-ui.ts");
  const url = hasNoWebUi(cluster) ? null : expectedWebUrl(cluster);
  return {
    ...clusterView(cluster, nowMs),
    sshKey: await clusterKey(cluster),
    ...(url !== undefined && { webUi: url }),
    nodes: cluster.nodes.map(nodeView),
  };
}

function inspectText(facts: Facts): string {
  const lines = [
    ["Cluster", facts.id],
    ["State", `${facts.state} (machines only; run \`wait\` to check the platform)`],
    ["Variant", facts.variant],
    ["Distribution", facts.distribution],
    ...(facts.region === undefined ? [] : [["Region", facts.region]]),
    ...(facts.secondsLeft === undefined
      ? []
      : [["Time left", `${durationText(facts.secondsLeft)} (ends ${facts.expiresAt})`]]),
    ...(facts.maximumCostDollars === undefined
      ? []
      : [["Cost at most", `$${facts.maximumCostDollars.toFixed(2)}, storage and addresses extra`]]),
    ["SSH key", facts.sshKey.isHere ? facts.sshKey.path : "not on this machine: the cluster was created elsewhere"],
    ["Web UI", facts.webUi === null ? "none" : (facts.webUi ?? "no master has an address yet")],
  ];
  const nodes = facts.nodes.map((node) => [
    node.reference,
    node.state,
    node.publicAddress ?? "–",
    node.privateAddress ?? "–",
    node.sshUser,
    node.id,
  ]);
  return `${tableText(lines)}\n\n${tableText([["NODE", "STATE", "PUBLIC IP", "PRIVATE IP", "SSH USER", "ID"], ...nodes])}`;
}

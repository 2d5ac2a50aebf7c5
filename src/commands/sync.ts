import { numbered } from "../system/amounts.ts";
import { defineCommand } from "../cli/command.ts";
import { argument, flag } from "../cli/options/option.ts";
import type { MasterSync } from "../cluster/sync-checkout.ts";
import { ClusterError } from "../errors.ts";
import type { Checkout } from "../platform/checkout/checkout.ts";
import type { BackendKind } from "../backend/contract.ts";
import type { JsonResults } from "./json-results.ts";
import { checkout, clusterOptions } from "./options.ts";

export const syncCommand = (kind: BackendKind) =>
  defineCommand({
    name: "sync",
    summary: "Send a checkout's tests to the masters, or a platform's folder to all nodes",
    description:
      "Send the integration tests and the bootstrap library of a checkout, open source or enterprise, to all masters at the same time; or the whole folder of a platform of your own, with its check and its tests, to all nodes. Only changed files are sent: a file counts as unchanged if its size and modification time match those on the node, or if its contents do. A node gets either all of the changes or none of them. Nothing is run: `upgrade`, or `create --replace`, installs again.",
    positionals: {
      checkout: argument(checkout, {
        name: "CHECKOUT_DIR",
        summary: "The checkout, or the folder of a platform of your own",
        environment: "CLUSTER_CHECKOUT_DIR",
        defaultText: "the current folder",
      }),
    },
    options: clusterOptions(kind, {
      checksum: flag({
        flag: "--checksum",
        summary:
          "Compare the contents of all files, not only of those whose size or time has changed",
      }),
    }),
    examples: [
      {
        words: "sync ~/src/platform",
        summary: "Sync the checkout in ~/src/platform to the cluster `default`",
      },
    ],
    run: async (input, context) => {
      const given = input.checkout ?? (await checkoutHere(context.cwd, context.signal));
      const { passedMs } = await import("../system/runtime.ts");
      const [{ findCluster }, { assertKeyIsHere, openMaskedConnections }, { syncCheckout }] =
        await Promise.all([
          import("../cluster/find-cluster.ts"),
          import("../cluster/connections.ts"),
          import("../cluster/sync-checkout.ts"),
        ]);
      const startMs = passedMs(context.clock);
      const backend = await kind.open(context, input);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      await assertKeyIsHere(cluster);
      await using connections = openMaskedConnections(cluster, context);
      const nodes = await syncCheckout(
        { ...context, connections, checksum: input.checksum },
        cluster,
        given,
      );
      const seconds = Math.round((passedMs(context.clock) - startMs) / 100) / 10;
      const lines = nodes.map(
        ({ node, files, sentFiles, sentBytes }) =>
          `${node}: ${numbered(files, "file")}, ${sentFiles} sent (${numbered(sentBytes, "byte")})`,
      );
      context.output.result({
        text: `${lines.join("\n")}\n${seconds} s`,
        data: { masters: nodes.filter(isMaster), nodes, seconds } satisfies JsonResults["sync"],
      });
    },
  });

const isMaster = ({ node }: MasterSync): boolean => node.startsWith("master_");

async function checkoutHere(cwd: string, signal: AbortSignal): Promise<Checkout> {
  const { readCheckout } = await import("../platform/checkout/checkout.ts");
  const outcome = await readCheckout(cwd, signal);
  if (outcome.problems === undefined) return outcome.value;
  throw new ClusterError("bad-usage", outcome.problems.join("\n"), {
    hint: "Pass the platform's folder or the checkout as CHECKOUT_DIR, set CLUSTER_CHECKOUT_DIR, or change to that folder.",
    facts: { folder: cwd },
  });
}

import { numbered } from "../system/amounts.ts";
import { defineCommand } from "../cli/command.ts";
import { argument, flag } from "../cli/options/option.ts";
import { ClusterError } from "../errors.ts";
import type { Checkout } from "../platform/checkout/checkout.ts";
import type { BackendKind } from "../backend/contract.ts";
import type { JsonResults } from "./json-results.ts";
import { checkout, clusterOptions } from "./options.ts";

export const syncCommand = (kind: BackendKind) =>
  defineCommand({
    name: "sync",
    summary: "Sync test and bootstrap files from a checkout to the masters",
    description:
      "Send the integration tests and the bootstrap library to all masters at the same time. They come from a checkout of the platform's repository, open source or enterprise, or from the tests folder of a platform of your own. Only changed files are sent: a file counts as unchanged if its size and modification time match those on the master, or if its contents do. A master gets either all of the changes or none of them.",
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
      const [{ findCluster }, { assertKeyIsHere, openMaskedConnections }, { syncCheckout }] =
        await Promise.all([
          import("../cluster/find-cluster.ts"),
          import("../cluster/connections.ts"),
          import("../cluster/sync-checkout.ts"),
        ]);
      const startMs = context.clock.now();
      const backend = await kind.open(input, context, context.signal);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      await assertKeyIsHere(cluster);
      await using connections = openMaskedConnections(cluster, context);
      const masters = await syncCheckout(
        cluster,
        given,
        { ...context, connections, checksum: input.checksum },
        context.signal,
      );
      const seconds = Math.round((context.clock.now() - startMs) / 100) / 10;
      const lines = masters.map(
        ({ node, files, sentFiles, sentBytes }) =>
          `${node}: ${numbered(files, "file")}, ${sentFiles} sent (${numbered(sentBytes, "byte")})`,
      );
      context.output.result({
        text: `${lines.join("\n")}\n${seconds} s`,
        data: { masters, seconds } satisfies JsonResults["sync"],
      });
    },
  });

async function checkoutHere(cwd: string, signal: AbortSignal): Promise<Checkout> {
  const { readCheckout } = await import("../platform/checkout/checkout.ts");
  const outcome = await readCheckout(cwd, signal);
  if (outcome.problems === undefined) return outcome.value;
  throw new ClusterError("bad-usage", outcome.problems.join("\n"), {
    hint: "Pass the checkout as CHECKOUT_DIR, set CLUSTER_CHECKOUT_DIR, or change to the checkout's folder.",
    facts: { folder: cwd },
  });
}

import { defineCommand } from "../cli/command.ts";
import { argument } from "../cli/option.ts";
import { outputFormat, verbose } from "../cli/shared-options.ts";
import { directoryPath } from "../cli/value-types.ts";
import type { Driver } from "./driver.ts";
import { clusterId } from "./options.ts";

export const syncCommand = (driver: Driver) =>
  defineCommand({
    name: "sync",
    summary: "Syncs test and bootstrap files from a checkout to the masters",
    description:
      "Sends the integration tests and the bootstrap library of a checkout of the cluster software's repository, open source or enterprise, to all masters at once. Only what has changed is sent; a master has either all of it or its former files.",
    positionals: {
      checkoutDir: argument(directoryPath, {
        name: "CHECKOUT_DIR",
        summary: "The checkout",
        defaultFrom: ({ environment, cwd }) => environment["CLUSTER_CHECKOUT_DIR"] || cwd,
        defaultText: "CLUSTER_CHECKOUT_DIR, else the current folder",
      }),
    },
    options: { clusterId, ...driver.placeOptions, output: outputFormat(["text", "json"]), verbose },
    examples: [{ words: "sync ~/src/platform", summary: "Sync that checkout to the cluster `default`" }],
    check: async (given, problems) => {
      if (given.checkoutDir === undefined) return;
      const { readCheckout } = await import("../platform/checkout.ts");
      for (const problem of (await readCheckout(given.checkoutDir)).problems ?? []) problems.add(problem);
    },
    run: async (input, context) => {
      const [{ findCluster }, { openConnections }, { syncCheckout }, { readCheckout }] = await Promise.all([
        import("../cluster/find-cluster.ts"),
        import("../cluster/cluster-connections.ts"),
        import("../cluster/sync-checkout.ts"),
        import("../platform/checkout.ts"),
      ]);
      const startMs = context.clock.now();
      const backend = await driver.open(input, context, context.signal);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      const checkout = await readCheckout(input.checkoutDir);
      if (checkout.problems !== undefined) throw new Error("the checkout changed while it was looked at");
      await using connections = openConnections(cluster.directory, context);
      const masters = await syncCheckout(cluster, checkout.value, { ...context, connections }, context.signal);
      const seconds = Math.round((context.clock.now() - startMs) / 100) / 10;
      const lines = masters.map(
        ({ node, files, sentFiles, sentBytes }) => `${node}: ${files} files, ${sentFiles} sent (${sentBytes} bytes)`,
      );
      context.output.result({ text: `${lines.join("\n")}\n${seconds} s`, data: { masters, seconds } });
    },
  });

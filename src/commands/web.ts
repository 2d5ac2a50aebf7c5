import { defineCommand } from "../cli/command.ts";
import { verbose } from "../cli/options/shared-options.ts";
import type { Driver } from "./driver.ts";
import { clusterId } from "./options.ts";

export const webCommand = (driver: Driver) =>
  defineCommand({
    name: "web",
    summary: "Opens the browser at the cluster's web UI",
    description:
      "Opens the web UI of the first master and prints its URL. It may be unavailable until `wait` has returned. A cluster with TLS has a certificate authority of its own, which the browser does not know: trust its certificate, which the command names, or override the browser's protection.",
    positionals: {},
    options: { clusterId, ...driver.placeOptions, verbose },
    examples: [{ words: "web -c nightly", summary: "The web UI of the cluster `nightly`" }],
    run: async (input, context) => {
      const [{ findCluster }, { findWebUi }, { openBrowser }] = await Promise.all([
        import("../cluster/find-cluster.ts"),
        import("../cluster/web-ui.ts"),
        import("../system/processes/browser.ts"),
      ]);
      const backend = await driver.open(input, context, context.signal);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      const { url, authorityUrl } = await findWebUi(cluster, context, context.signal);
      if (!(await openBrowser(url)))
        context.progress.note("No browser could be started on this machine; open the URL yourself.");
      if (authorityUrl !== undefined) {
        context.progress.note(`The browser must trust the cluster's certificate authority: ${authorityUrl}`);
      }
      context.output.result({ text: url, data: { url } });
    },
  });

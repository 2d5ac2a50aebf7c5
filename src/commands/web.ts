import { defineCommand } from "../cli/command.ts";
import { verbose } from "../cli/options/value-types.ts";
import type { BackendKind } from "../backend/contract.ts";
import { scopeOptions } from "./backend-options.ts";
import { clusterId } from "./options.ts";

export const webCommand = (kind: BackendKind) =>
  defineCommand({
    name: "web",
    summary: "Open the cluster's web UI in a browser",
    description:
      "Open the web UI of the first master and print its URL. The command needs the cluster's SSH key and the master's pinned host key, because otherwise another machine could pose as the master. The web UI may be unavailable until `wait` has returned. A cluster that uses TLS has its own certificate authority, which the browser does not know. The command prints the URL of that authority's certificate: trust the certificate, or override the browser's warning. If the platform has no web UI, the command says so. Where this computer cannot reach the node, the URL has a port of 127.0.0.1 that leads there until Ctrl-C.",
    options: { clusterId, ...scopeOptions(kind), verbose },
    examples: [{ words: "web -c nightly", summary: "Open the web UI of the cluster `nightly`" }],
    run: async (input, context) => {
      const [
        { findCluster },
        { findWebUi, openWayTo },
        { isForDesktop, openBrowser },
        { orAborted },
      ] = await Promise.all([
        import("../cluster/find-cluster.ts"),
        import("../cluster/web-ui.ts"),
        import("../system/processes/run-program.ts"),
        import("../system/time-limit.ts"),
      ]);
      const backend = await kind.open(context, input);
      const cluster = await findCluster(backend, input.clusterId, context.signal);
      const found = await findWebUi(context, cluster);
      if (found === undefined) {
        context.progress.note("This platform has no web UI.");
        return context.output.result({ text: "" });
      }
      await using way = await openWayTo(context, cluster, found);
      const { url, authority } = way ?? found;
      // The package that starts the browser always passes on the environment of this process.
      context.dropVariables(isForDesktop);
      if (!(await openBrowser(url)))
        context.progress.note(
          "No browser could be started on this computer; open the URL yourself.",
        );
      if (authority !== undefined) {
        context.progress.note(
          `The browser must trust the cluster's certificate authority: ${authority}`,
        );
      }
      context.output.result({ text: url });
      if (way === undefined) return;
      context.progress.note("This address leads to the node until Ctrl-C.");
      await orAborted(new Promise<never>(() => {}), context.signal);
    },
  });

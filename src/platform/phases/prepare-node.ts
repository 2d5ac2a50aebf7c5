import type { Layout } from "../layout.ts";
import type { Phase } from "./phase.ts";
import { prepareScript } from "./prepare-script.ts";
import { runRemoteScript } from "./remote-script.ts";

const limitMs = 30 * 60_000;

/** Brings what the layout's installer needs onto the node. */
export const prepareNode = (layout: Layout): Phase => ({
  title: "Prepare",
  run: async ({ connection, reference, step }, signal) => {
    await runRemoteScript(
      connection,
      {
        name: "e2e-prepare",
        text: prepareScript,
        arguments: [layout.needsDocker ? "yes" : "no", layout.installedMarker, ...layout.needs],
        limitMs,
        task: "preparing it",
        failure: `${reference} could not be prepared`,
        errorId: "install-failed",
        onNow: (text) => {
          step.update(text);
        },
      },
      signal,
    );
  },
});

import { shellText } from "../../../ssh/shell-text.ts";
import { errorCode } from "../../../system/files/private-file.ts";
import { outsideReason } from "../../../system/printable.ts";
import { portName, portPath } from "../machines/machine-arguments.ts";
import { linesOf, openMonitor, withShortPath } from "../qemu/monitor.ts";
import agentFile from "./agent.sh" with { type: "text" };
import installAgentFile from "./install-agent.sh" with { type: "text" };

/** Where the agent keeps its files on the node. */
export const agentFolder = "/run/cluster-e2e";

/** Installs the agent at a template's first boot. */
export const installAgent = shellText(installAgentFile, {
  AGENT: shellText(agentFile, { PORT: portPath, FOLDER: agentFolder }),
  FOLDER: agentFolder,
});

/** `ready`: it waits for a script. `done`: the script has run. Everything else carries a reason. */
export type Report =
  | { readonly is: "ready" | "done" }
  | { readonly is: "unsuitable" | "failed"; readonly why: string };

/**
 * Passes a script, if any, to the agent of the machine in this folder, and resolves with the next
 * report. Throws when QEMU ends.
 */
export async function askAgent(
  folder: string,
  script: string | undefined,
  signal: AbortSignal,
): Promise<Report> {
  return await withShortPath(folder, portName, async (path) => {
    const socket = await openMonitor({ folder, path }, signal).catch((error: unknown) => {
      // QEMU ended while it was connected to.
      throw errorCode(error) === "ECONNRESET" ? new Error("it ended") : error;
    });
    try {
      if (script !== undefined) socket.write(`${Buffer.from(script).toString("base64")}\n`);
      for await (const line of linesOf(socket)) {
        const report = parseReport(line);
        if (report !== undefined) return report;
      }
      throw new Error("it ended");
    } finally {
      socket.destroy();
    }
  });
}

export function parseReport(line: string): Report | undefined {
  const [, is, why = ""] = /^(ready|done|unsuitable|failed)(?: (.*))?$/s.exec(line) ?? [];
  if (is === "ready" || is === "done") return { is };
  if (is === "unsuitable" || is === "failed") return { is, why: outsideReason(why) };
  return undefined;
}

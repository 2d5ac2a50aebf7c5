import { installPaths, installUnits, unitFileOf } from "../../install-paths.ts";
import type { Layout } from "../../layouts/layout.ts";
import { shellText, withoutHeader } from "../../../ssh/shell-text.ts";
import bootstrapEnd from "./bootstrap-end.sh" with { type: "text" };
import bootstrapServer from "./bootstrap-server.py" with { type: "text" };
import { type Phase, scriptPhase } from "../phase.ts";
import serveFile from "./serve.sh" with { type: "text" };
import unitFunctions from "../unit-functions.sh" with { type: "text" };

export interface BootstrapServer {
  /** The first master's private address. */
  readonly address: string;
  readonly port: number;
  /**
   * The first part of every path, 32 hexadecimal digits. On a node, anyone who knows it can read
   * the cluster's secrets.
   */
  readonly secret: string;
  /** The private addresses of all nodes: nobody else gets an answer. */
  readonly nodeAddresses: readonly string[];
  /** The private addresses of the nodes that will report when they are done. */
  readonly expectedAddresses: readonly string[];
  /** Relative to `genconf/serve`; requested to check that the server works. */
  readonly installScript: string;
  /** The folder that is served, and removed once all nodes are done. */
  readonly folder: string;
  /** The longest time that the server runs, in case a node never reports. */
  readonly longestSeconds: number;
}

/** On an emulated machine on a busy computer, Python takes minutes to start. */
const answerSeconds = 300;

const unitFile = unitFileOf(installUnits.bootstrap);

/** No argument list contains the secret. */
export function serveScript(server: BootstrapServer): string {
  const { address, port, secret, installScript, folder, longestSeconds } = server;
  const { nodeAddresses: nodes, expectedAddresses: expected } = server;
  const { bootstrapState: state, bootstrapEnd: end } = installPaths;
  const files = {
    SERVER: installPaths.bootstrapServer,
    SETTINGS: installPaths.bootstrapSettings,
    STATE: state,
    END: end,
  };
  const enabledLink = `/etc/systemd/system/multi-user.target.wants/${installUnits.bootstrap}.service`;
  const settings = JSON.stringify({ folder, state, address, port, secret, nodes, expected });
  const values = {
    ...files,
    UNIT: installUnits.bootstrap,
    UNIT_FILE: unitFile,
    SERVER_TEXT: withoutHeader(bootstrapServer),
    END_TEXT: shellText(bootstrapEnd, {
      ...files,
      UNIT_FILE: unitFile,
      LINK: enabledLink,
      SERVE: folder,
    }),
    // The node completes it with a deadline by its own clock.
    SETTINGS_TEXT: settings.slice(0, -1),
    SECONDS_LEFT: longestSeconds,
    ADDRESS: address,
    PORT: port,
    PROBE: `${secret}/${installScript}`,
    ANSWER_SECONDS: answerSeconds,
  };
  return shellText(serveFile, values) + shellText(unitFunctions);
}

/** Serves genconf's output to the cluster's own nodes until all of them are done. */
export const serve = (server: BootstrapServer): Phase =>
  scriptPhase("Serve", ({ reference }) => ({
    name: "e2e-serve",
    text: serveScript(server),
    task: "starting the bootstrap server",
    failure: `${reference}: cannot start the bootstrap server`,
    errorId: "install-failed",
  }));

const firstPort = 18_080;

/** Returns a port that no layout uses. It must be known before genconf shows the layout. */
export function bootstrapPort(layouts: readonly Layout[]): number {
  const taken = new Set(
    layouts.flatMap((layout) => [...layout.masterPorts, ...layout.publicPorts]),
  );
  let port = firstPort;
  while (taken.has(port)) port += 1;
  return port;
}

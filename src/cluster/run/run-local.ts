import { join } from "node:path";
import type { Backend } from "../../backend/contract.ts";
import {
  type ClusterRecord,
  type NodeRecord,
  type Role,
  nodeReference,
} from "../../model/cluster-record.ts";
import { scopeVariable } from "../../model/option-schema.ts";
import { layouts } from "../../platform/layouts/find-layout.ts";
import { loginVariables } from "../../platform/test-environment.ts";
import { heldText } from "../../ssh/session/held-output.ts";
import { isLoopback } from "../../ssh/openssh-files.ts";
import { ownedTemporaryFolder } from "../../system/files/owned-folder.ts";
import { writePrivateFile } from "../../system/files/private-file.ts";
import { type ForegroundRun, runForeground } from "../../system/processes/run-foreground.ts";
import type { Work } from "../../system/runtime.ts";
import { openMaskedConnections } from "../connections.ts";
import { createKeptOutput } from "../events/kept-output.ts";
import { runRecorder } from "../events/record-event.ts";
import { type RunRequest, hideOwnValues, writeConfiguration } from "../run-on-node.ts";
import { syncCheckout } from "../sync-checkout.ts";

export interface LocalRun
  extends
    Pick<RunRequest, "words" | "fails" | "login" | "variables" | "checkout" | "keepsOutput">,
    Pick<ForegroundRun, "cwd" | "isTerminal" | "signalOf" | "onOutput"> {
  /** The path of this program. */
  readonly program: string;
  /** Where the cluster is. */
  readonly scope: Backend<unknown>["scope"];
  /** The cluster as JSON, for a file. */
  readonly json: string;
}

/**
 * Runs a user's command on this computer, with variables by which it finds the cluster. Resolves with its status. The
 * files that the variables name are those of the moment when it begins.
 */
export async function runLocal(
  work: Work,
  cluster: ClusterRecord,
  request: LocalRun,
): Promise<number> {
  const { words, login, checkout, json } = request;
  hideOwnValues(request, work);
  await using configuration = await writeConfiguration(cluster);
  if (checkout !== undefined) {
    await using connections = openMaskedConnections(cluster, work);
    await syncCheckout({ ...work, connections }, cluster, checkout);
  }
  await using folder = await ownedTemporaryFolder();
  const jsonFile = join(folder.path, "cluster.json");
  await writePrivateFile(jsonFile, json);
  const environment = {
    ...work.environment,
    ...localVariables(cluster, request.scope),
    CLUSTER_PROGRAM: request.program,
    CLUSTER_SSH_CONFIG: configuration.path,
    CLUSTER_JSON: jsonFile,
    ...loginVariables(login, layouts[0]),
    ...request.variables,
  };
  const line = words.length === 1 ? words : ['exec "$@"', "sh", ...words];
  const argv: ForegroundRun["argv"] = ["/bin/sh", "-c", ...line];
  const kept = createKeptOutput(request.keepsOutput === true);
  using recorder = runRecorder(cluster, { ...request, ...kept }, [], work);
  const { onOutput } = request;
  // A command that has this program's own streams keeps its output to itself.
  const see: typeof onOutput =
    onOutput &&
    ((stream, chunk) => {
      kept.add(Buffer.from(chunk));
      return onOutput(stream, chunk);
    });
  const onHeld = (status: number): void =>
    work.progress.note(`The command ${heldText(status, "A process that it started")}`);
  const run = { ...request, onOutput: see, onHeld, argv, environment };
  const status = await runForeground(run, work.signal);
  recorder.end([status]);
  return status;
}

/** The address at which this computer reaches all ports of a node; undefined if it only reaches the node's sshd. */
export const addressOf = ({ ssh: { host, port, through } }: NodeRecord): string | undefined =>
  host === "" || port !== 22 || through !== undefined || isLoopback(host) ? undefined : host;

/**
 * The variables that name a cluster, where it is, and its nodes that aren't off: by addresses at which this computer reaches them,
 * or by their names in the SSH configuration where there are none.
 */
export function localVariables(
  cluster: ClusterRecord,
  scope: LocalRun["scope"],
): Readonly<Record<string, string>> {
  const nodesOf = (wanted: Role): string =>
    cluster.nodes
      .filter(({ role, state }) => role === wanted && state !== "ended")
      .map((node) => addressOf(node) ?? nodeReference(node))
      .join(" ");
  return {
    CLUSTER_ID: cluster.id,
    ...(scope && { [scopeVariable(scope.kind)]: scope.name }),
    CLUSTER_MASTERS: nodesOf("master"),
    CLUSTER_AGENTS: nodesOf("agent"),
    CLUSTER_PUBLIC_AGENTS: nodesOf("public_agent"),
  };
}

import { ClusterError } from "../../errors.ts";
import type { ClusterRecord } from "../../model/cluster-record.ts";
import { commandLimitMs, type Connection } from "../../ssh/connection/connection.ts";
import { shellText } from "../../ssh/shell-text.ts";
import { configurationText, parseConfiguration } from "../configuration/configuration-file.ts";
import type { Configuration } from "../configuration/configuration.ts";
import { bootstrapOriginOf } from "../configuration/install-configuration.ts";
import { installWork, upgradeWork } from "../install-paths.ts";
import { runGenconf } from "../install/genconf.ts";
import {
  type NodeConnection,
  type Phase,
  type PhaseWork,
  runPhase,
  runRemoteScript,
} from "../install/phase.ts";
import {
  type FoundArtifact,
  type Installation,
  bootstrapUrlOf,
  firstMasterOf,
} from "../install/steps.ts";
import type { Layout, LayoutUpgrade } from "../layouts/layout.ts";
import folderFile from "./upgrade-folder.sh" with { type: "text" };

interface ConfigureUpgrade {
  readonly cluster: ClusterRecord;
  readonly artifact: FoundArtifact;
  readonly layout: Layout & { readonly upgrade: LayoutUpgrade };
  readonly installed: readonly string[];
}

/**
 * Generates the files that upgrade the nodes, in a separate folder on the first master, from the
 * configuration of the installation. Resolves with the path of each version's script below the
 * bootstrap server's URL.
 */
export async function configureUpgrade(
  work: PhaseWork,
  installation: Installation,
  request: ConfigureUpgrade,
): Promise<ReadonlyMap<string, string>> {
  return runPhase(work, generateUpgrade(installation, request), firstMasterOf(request.cluster));
}

const generateUpgrade = (
  installation: Installation,
  { cluster, artifact, layout, installed }: ConfigureUpgrade,
): Phase<ReadonlyMap<string, string>> => ({
  title: "Configure",
  run: async ({ connection, reference, step }, signal) => {
    const { plan } = installation;
    const url = bootstrapUrlOf(installation, firstMasterOf(cluster));
    const before = await readConfiguration(connection, signal);
    const own = layout.baseConfiguration({ ...plan, release: artifact.version.version });
    const server = serverOf(before, cluster, url);
    const configuration = { ...own, ...before, bootstrap_url: server };
    await runRemoteScript(
      connection,
      {
        name: "e2e-upgrade-folder",
        text: shellText(folderFile, { FROM: installWork.genconf, TO: upgradeWork.genconf }),
        task: "creating the upgrade's folder",
        failure: `${reference}: cannot create the upgrade's folder`,
        errorId: "remote-command-failed",
      },
      signal,
    );
    const text = await configurationText(configuration, layout.configurationFormat);
    const target = { path: `${upgradeWork.genconf}/config.yaml`, mode: 0o600, sudo: true };
    await connection.upload({ text }, target, signal);
    step.update("generating the upgrade");
    const scripts = new Map<string, string>();
    for (const version of new Set(installed))
      scripts.set(
        version,
        await generateScript({ connection, reference }, { layout, version, server }, signal),
      );
    return scripts;
  },
});

const mostBytes = 256 * 1024;

/** The configuration may hold the license and password hashes, so it is never shown. */
async function readConfiguration(
  connection: Connection,
  signal: AbortSignal,
): Promise<Configuration> {
  const path = `${installWork.genconf}/config.yaml`;
  const result = await connection.run(
    {
      argv: ["head", "-c", String(mostBytes), path],
      sudo: true,
      isOutputHidden: true,
      limitMs: commandLimitMs,
      task: "reading the cluster's configuration",
    },
    signal,
  );
  const parsed = result.status === 0 ? await parseConfiguration(result.stdout, path) : undefined;
  if (parsed?.value !== undefined && Object.keys(parsed.value).length > 0) return parsed.value;
  if (parsed?.problems !== undefined)
    throw new ClusterError(
      "configuration-refused",
      `The configuration on the first master cannot be read: ${parsed.problems.join("; ")}`,
      { hint: `Change ${path} on the first master, and try again.`, facts: { file: path } },
    );
  throw new ClusterError(
    "not-installed",
    `The first master lacks the configuration that the cluster was installed with: ${path}.`,
    {
      hint: "Only clusters that this program installed can be upgraded.",
      facts: { file: path, status: result.status },
    },
  );
}

/** The URL of our own server, which has another secret each time. A user's own server stays. */
function serverOf(before: Configuration, cluster: ClusterRecord, url: string): string {
  const given = before["bootstrap_url"];
  const isOurs =
    typeof given !== "string" || given.startsWith(bootstrapOriginOf(firstMasterOf(cluster)));
  return isOurs ? url : given;
}

interface ScriptRequest {
  readonly layout: ConfigureUpgrade["layout"];
  readonly version: string;
  readonly server: string;
}

/** A version becomes a word of the artifact, and a part of the script that it writes. */
const safeVersion = /^[\w.+~-]{1,100}$/;

async function generateScript(
  node: NodeConnection,
  { layout, version, server }: ScriptRequest,
  signal: AbortSignal,
): Promise<string> {
  const { script, words } = layout.upgrade;
  const run = {
    paths: upgradeWork,
    words: words(version),
    names: "file" in script ? [script.file] : [],
    linePrefix: "linePrefix" in script ? script.linePrefix : "",
    hint: `An upgrade keeps the configuration of the cluster, which is ${installWork.genconf}/config.yaml on the first master. Change it there.`,
  };
  const isSafe = safeVersion.test(run.words[1] ?? "none");
  const found = isSafe ? await runGenconf(node, run, signal) : "";
  const path = "file" in script ? namedIn(found, script.file) : pathBelow(found, server);
  if (path !== "") return path;
  const [option] = run.words;
  throw new ClusterError(
    "artifact-invalid",
    `The artifact's ${option} generated no script that upgrades a node.`,
    {
      hint: "Make sure that it is a complete release artifact. Its output is in the logs of the first master.",
    },
  );
}

/**
 * Returns the name only if it is the expected one: the first master may print anything, and the
 * nodes request that name.
 */
const namedIn = (found: string, file: string): string => (found === file ? file : "");

/** The path of a URL below another one; empty if it is elsewhere. */
function pathBelow(found: string, url: string): string {
  const path = found.startsWith(`${url}/`) ? found.slice(url.length + 1) : "";
  return /^[\w-][\w./-]{0,200}$/.test(path) ? path : "";
}

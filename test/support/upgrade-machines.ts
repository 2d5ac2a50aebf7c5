import { chmod, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Backend } from "../../src/backend/contract.ts";
import { upgradeCluster } from "../../src/cluster/upgrade/upgrade-cluster.ts";
import type { UpgradeRequest } from "../../src/cluster/upgrade/plan-upgrade.ts";
import { type ClusterRecord, type Role, nodeReference } from "../../src/model/cluster-record.ts";
import { accepted } from "../../src/model/checked.ts";
import { locateArtifact } from "../../src/platform/artifact/artifact-request.ts";
import { type Clock, passedMs, systemClock } from "../../src/system/runtime.ts";
import { exampleCluster, exampleTraits } from "./install-example.ts";
import { type FolderMachines, startMachines } from "./install-machine.ts";
import { neverAborted } from "./never-aborted.ts";
import { type RecordingProgress, recordingProgress } from "./recording-progress.ts";
import { scratchFolder } from "./scratch-folder.ts";

/** A cluster of the layout dcos with version 1.0, on machines in folders, and artifacts that upgrade it. */
export interface UpgradeMachines extends AsyncDisposable {
  readonly machines: FolderMachines;
  readonly cluster: ClusterRecord;
  readonly told: RecordingProgress;
  /** The lines that the nodes' upgrade scripts and checks wrote, in their order. */
  events(): Promise<readonly string[]>;
  upgrade(changes?: Partial<UpgradeChanges>): ReturnType<typeof upgradeCluster>;
  /** The version in a node's version file. */
  versions(): Promise<readonly string[]>;
}

interface UpgradeChanges extends Pick<UpgradeRequest, "parallel"> {
  /** Of the artifact. */
  readonly version: string;
  /** Lines of shell in the middle of the node's script; `$node` is the node. */
  readonly script: string;
  readonly head: string;
  readonly timeoutMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** How the backend's record of the cluster differs. */
  readonly record: Partial<ClusterRecord>;
}

const defaults: UpgradeChanges = {
  version: "2.0",
  script: "",
  head: "# variant: None",
  parallel: 1,
  timeoutMs: 600_000,
  clock: systemClock,
  signal: neverAborted,
  record: {},
};

/** What genconf generates reads the configuration as a release does, and refuses a node with another version. */
const artifactText = (
  { version, script, head }: UpgradeChanges,
  events: string,
): string => `#!/usr/bin/env bash
${head}
set -euo pipefail
case $1 in
  --version) echo '{"variant": "", "version": "${version}"}' ;;
  --generate-node-upgrade-script)
    grep -q '^superuser: "me"$' genconf/config.yaml || { echo 'superuser: must be set'; exit 1; }
    [ -x genconf/ip-detect ] || { echo 'ip-detect: must be executable'; exit 1; }
    url=$(sed -n 's/^bootstrap_url: "\\(.*\\)"$/\\1/p' genconf/config.yaml)
    mkdir -p genconf/serve/upgrade/abc
    exec 3>genconf/serve/upgrade/abc/dcos_node_upgrade.sh
    echo "from=$2" >&3
    cat >&3 <<'SCRIPT'
set -eu
node=$(basename "$MACHINE")
file=$MACHINE/opt/mesosphere/etc/dcos-version.json
echo "begin $node" >>${events}
grep -q "\\"$from\\"" "$file" || { echo "ERROR: Expecting to upgrade DC/OS from $from"; exit 1; }
${script}
echo '{"version": "${version}", "dcos-variant": "open"}' >"$file"
echo "end $node" >>${events}
SCRIPT
    echo "Node upgrade script URL: $url/upgrade/abc/dcos_node_upgrade.sh"
    ;;
esac
`;

export async function upgradeMachines(roles: readonly Role[]): Promise<UpgradeMachines> {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles });
  const log = join(scratch.path, "events");
  await writeFile(log, "");
  for (const { folder, node, write } of machines.machines) {
    await write("var/lib/cluster-e2e/layout", "dcos\n");
    await write("var/lib/cluster-e2e/install.status", "exit 0\n");
    await write("etc/systemd/system/dcos.target", "");
    await write(
      "opt/mesosphere/etc/dcos-version.json",
      '{"version": "1.0", "dcos-variant": "open"}\n',
    );
    await write("opt/mesosphere/etc/bootstrap-config.json", '{"ssl_enabled": false}\n');
    const check = `#!/bin/sh\n[ ! -e ${folder}/unready ] || { echo the disk is full; exit 1; }\necho "check ${nodeReference(node)}" >>${log}\n`;
    await write("opt/mesosphere/bin/3dt", check);
    await chmod(join(folder, "opt/mesosphere/bin/3dt"), 0o755);
  }
  const first = machines.machines[0]!;
  const genconf = "var/lib/cluster-e2e/installer/genconf";
  const url = `http://${first.node.privateAddress}:18080/${"0".repeat(32)}`;
  await first.write(
    `${genconf}/config.yaml`,
    `bootstrap_url: "${url}"\nsuperuser: "me"\npassword: "hunter2-hunter2"\n`,
  );
  await first.write(`${genconf}/ip-detect`, "#!/bin/sh\n");
  await chmod(join(first.folder, genconf, "ip-detect"), 0o755);
  await first.write(`${genconf}/serve/old`, "");
  const directory = join(scratch.path, "state");
  await machines.openTo(directory);
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const told = recordingProgress();
  return {
    machines,
    cluster,
    told,
    events: async () => (await readFile(log, "utf8")).trim().split("\n"),
    upgrade: async (given = {}) => {
      const changes = { ...defaults, ...given };
      const artifact = join(scratch.path, "release.sh");
      await writeFile(artifact, artifactText(changes, log));
      const { parallel, timeoutMs, clock, record } = changes;
      const find = async (): Promise<ClusterRecord> => ({ ...cluster, ...record });
      const backend = { find, nodes: exampleTraits } as unknown as Backend<unknown>;
      const request = {
        clusterId: cluster.id,
        artifact: accepted(await locateArtifact(artifact, "/", neverAborted)),
        sha256: undefined,
        parallel,
        workspaceFolder: scratch.path,
        deadlineMs: passedMs(clock) + timeoutMs,
        onAbandon: () => ({ [Symbol.dispose]: () => {} }),
      };
      const runtime = { environment: {}, clock, progress: told.progress };
      return upgradeCluster({ ...runtime, signal: changes.signal }, backend, request);
    },
    versions: async () =>
      Promise.all(
        machines.machines.map(async ({ read }) => {
          const text = await read("opt/mesosphere/etc/dcos-version.json");
          return (JSON.parse(text) as { readonly version: string }).version;
        }),
      ),
    [Symbol.asyncDispose]: async () => {
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

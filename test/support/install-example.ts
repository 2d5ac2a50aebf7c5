import type {
  ClusterRecord,
  NodeRecord,
  NodeTraits,
  Variant,
} from "../../src/model/cluster-record.ts";
import type { Configuration } from "../../src/platform/configuration/configuration.ts";
import type { AddedConfiguration, InstallPlan } from "../../src/platform/install/install-plan.ts";
import { clusterLayout } from "../../src/platform/layouts/cluster.ts";

/**
 * The smallest release artifact that the layout allows. Its configuration decides what happens on the nodes: the install script fails on the role in
 * `fail_on`, and keeps running if `hold` is set.
 */
export const exampleArtifact = (variant: string): string => `#!/usr/bin/env bash
# variant: ${variant}
set -euo pipefail
case $1 in
  --version) echo 'Loaded image: stray line'; echo '{"variant": "${variant}", "version": "1.0"}' ;;
  --genconf)
    [ "$(stat -c %a genconf/config.yaml)" = 600 ] || { echo 'config.yaml: can be read by others'; exit 1; }
    [ -x genconf/ip-detect ] || { echo 'ip-detect: not executable'; exit 1; }
    if grep -q '^refuse_me' genconf/config.yaml; then
      printf 'refuse_me: is not a key\\nresolvers: must be a list\\n' >&2
      exit 1
    fi
    mkdir genconf/serve
    cp genconf/config.yaml genconf/serve/
    sed -n 's/^bootstrap_url: "\\(.*\\)"$/url=\\1/p' genconf/config.yaml >genconf/serve/cluster_install.sh
    cat >>genconf/serve/cluster_install.sh <<'INSTALL'
set -eu
echo "arguments: $*"
config=$(curl -fsS --noproxy '*' "$url/config.yaml")
case "$config" in *"fail_on: $2"*) echo 'disk is full' >&2; exit 3 ;; esac
case "$config" in *'hold: true'*) sleep 600 ;; esac
mkdir -p "$MACHINE/opt/cluster/bin" "$MACHINE/opt/cluster/etc"
echo '{"variant": "${variant}", "version": "1.0"}' >"$MACHINE/opt/cluster/etc/version.json"
echo '{"ssl_enabled": false}' >"$MACHINE/opt/cluster/etc/bootstrap-config.json"
printf '#!/bin/sh\\nexit 0\\n' >"$MACHINE/opt/cluster/bin/check"
chmod 755 "$MACHINE/opt/cluster/bin/check"
: >"$MACHINE/etc/systemd/system/cluster.target"
INSTALL
    ;;
esac
`;

/** A scope without others. */
export const exampleScope = {
  kind: "region",
  name: "us-west-2",
  option: "region",
  findElsewhere: async () => ({ scopes: [], unreachable: [] }),
};

/** A configuration to add to the base, without a license. */
export const added = (values: Configuration): AddedConfiguration => ({
  kind: "added",
  values,
  securityMode: undefined,
  licenseKey: undefined,
});

export const examplePlan = (artifactPath: string, changes: Partial<InstallPlan>): InstallPlan => ({
  artifact: { kind: "file", path: artifactPath, shown: artifactPath },
  sha256: undefined,
  layout: clusterLayout,
  platform: undefined,
  variant: "oss",
  configuration: added({}),
  genconfFiles: [],
  copyToMaster: [],
  selinuxEnforcing: false,
  workspaceFolder: "/tmp",
  ...changes,
});

export const exampleTraits: NodeTraits = {
  ipDetect: "#!/bin/sh\necho 10.0.0.1\n",
  ipDetectPublic: undefined,
  nodesKeepTime: true,
  cgroups1Advice: "",
};

/** An agent that runs and can be reached, unless something else is given. */
export const exampleNode = ({
  host = "192.0.2.1",
  ...change
}: Partial<NodeRecord> & { host?: string }): NodeRecord => ({
  id: "i-1",
  role: "agent",
  index: 0,
  state: "running",
  publicAddress: undefined,
  privateAddress: undefined,
  ssh: { host, port: 22, user: "admin" },
  web: { host, httpPort: 80, httpsPort: 443 },
  ...change,
});

export const exampleCluster = (nodes: readonly NodeRecord[], variant: Variant): ClusterRecord => ({
  id: "example",
  creationId: "c0ffee",
  backend: "cloud",
  region: "us-west-2",
  variant,
  distribution: "debian-12",
  state: "running",
  createdAt: undefined,
  expiresAt: undefined,
  nodes,
  directory: "/nowhere",
});

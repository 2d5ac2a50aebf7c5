import type { Variant } from "../../model/cluster-record.ts";
import * as read from "../../model/reader.ts";
import { compareReleases, releaseNumbers } from "../artifact/artifact-version.ts";
import { shellText } from "../../ssh/shell-text.ts";
import type { Layout } from "./layout.ts";
import confineDocker from "./confine-docker.sh" with { type: "text" };
import containerFile from "./dcos-container.sh" with { type: "text" };
import dockerVersion from "./dcos-docker-version.sh" with { type: "text" };
import imageFile from "./docker-image.sh" with { type: "text" };

/** The layout of DC/OS releases, 1.9 to 2.x. */
export const dcosLayout: Layout = {
  name: "dcos",
  headVariants: { None: "oss", ee: "enterprise" },
  installScript: "dcos_install.sh",
  installRoles: { master: "master", agent: "slave", public_agent: "slave_public" },
  returnEarlyFlag: "--no-block-dcos-setup",
  setupUnits: ["dcos-download", "dcos-setup"],
  versionFile: "/opt/mesosphere/etc/dcos-version.json",
  installedVariant: (body) => installedVariants.get(body["dcos-variant"]),
  environmentFile: "/opt/mesosphere/environment.export",
  testsFolders: ["/opt/mesosphere/active/dcos-integration-test"],
  // Newest first: a release has one of them, or still has an older one under its old name.
  nodeChecks: [
    ["/opt/mesosphere/bin/dcos-check-runner", "check", "node-poststart"],
    ["/opt/mesosphere/bin/dcos-diagnostics", "check", "node-poststart"],
    ["/opt/mesosphere/bin/3dt", "--diag"],
  ],
  nodeCheckWrapper: "/opt/mesosphere/bin/dcos-shell",
  bootstrapConfigFile: "/opt/mesosphere/etc/bootstrap-config.json",
  web: { endpoint: undefined, authority: { path: "/ca/dcos-ca.crt" } },
  secretFiles: [
    "/var/lib/dcos/dcos-oauth/auth-token-secret",
    "/var/lib/dcos/pki/tls/CA/private/custom_ca.key",
  ],
  installedMarker: "/etc/systemd/system/dcos.target",
  // The union of all releases.
  masterPorts: [
    53, 80, 179, 443, 1050, 2181, 2379, 2380, 5050, 7070, 8080, 8101, 8123, 8181, 9000, 9942, 9990,
    15055, 33107, 36771, 41281, 42819, 43911, 46839, 61053, 61091, 61420, 61421, 62020, 62053,
    62080, 62091, 62501, 64000,
  ],
  publicPorts: [80, 443, 9000, 61001],
  variablePrefixes: ["CLUSTER_", "DCOS_"],
  // ifconfig: required only by the preflight of 1.12. dig: the LDAP synchronization calls it.
  needs: ["bash", "curl", "tar", "xz", "docker", "unzip", "ipset", "ping", "ifconfig"],
  packages: { apt: [], dnf: [] },
  kernelModules: [],
  enterpriseNeeds: ["dig"],
  conditions: ({ nodesKeepTime, configuration }) => [
    "docker",
    "dns-port-free",
    "cgroups-1",
    ...(nodesKeepTime && String(configuration["check_time"]) !== "false"
      ? (["clock-synchronized"] as const)
      : []),
  ],
  imageSetup: shellText(imageFile) + shellText(confineDocker),
  containerSetup: shellText(containerFile) + shellText(confineDocker),
  installShims: (release) =>
    readsLastDockerVersion(release) ? { docker: shellText(dockerVersion) } : {},
  baseConfiguration: ({ variant, release, nodesKeepTime }) => ({
    // Exhibitor and dcos-net refuse to start while the kernel's clock isn't synchronized, and
    // nothing synchronizes it inside such nodes.
    ...(nodesKeepTime ? {} : { check_time: false }),
    // Otherwise genconf starts a certificate authority on port 443 of its machine, which is a master here.
    ...(variant === "enterprise" && isAtLeast(release, [2, 0])
      ? { exhibitor_tls_enabled: false }
      : {}),
  }),
  configurationFormat: "yaml",
  release: {
    testsPackage: "dcos-integration-test",
    bootstrapLibraryFolder: "/opt/mesosphere/active/bootstrap/lib",
    internalLibrary: "dcos_internal_utils",
    loginPath: "/acs/api/v1/auth/login",
    // The platform's own test suite refuses an empty list of hosts unless it is told not to wait for them.
    testVariables: ({ agent, public_agent: publicAgent }): Readonly<Record<string, string>> =>
      agent === 0 || publicAgent === 0 ? { WAIT_FOR_HOSTS: "false" } : {},
    agentsRegistered: {
      path: "/mesos/master/slaves",
      count: (body) => read.field("slaves", read.list(read.anything))(body)?.length ?? 0,
      // An open source cluster has no login that works without a person.
      variants: ["enterprise"],
    },
  },
  factFiles: undefined,
  upgrade: {
    // It writes the installer for the nodes too. The script refuses nodes with another version.
    words: (installed) => ["--generate-node-upgrade-script", installed],
    script: { linePrefix: "Node upgrade script URL: " },
    // Without --skip-checks, it runs the release's checks before and after, where the release has them.
    scriptArguments: () => [],
    isRepeatable: false,
    preparesNodes: false,
  },
};

const installedVariants: ReadonlyMap<unknown, Variant> = new Map([
  ["open", "oss"],
  ["enterprise", "enterprise"],
]);

const isAtLeast = (release: string, least: readonly number[]): boolean => {
  const numbers = releaseNumbers(release);
  return numbers !== undefined && compareReleases(numbers, least) >= 0;
};

/** The first release of each line that asks Docker for its version with `--format`. */
const firstToFormat: Readonly<Record<string, readonly number[]>> = {
  "1.11": [1, 11, 12],
  "1.12": [1, 12, 5],
  "1.13": [1, 13, 4],
};

/**
 * Older releases read the last `Version:` line of `docker version`. With every Docker since 18.09
 * that is docker-init's 0.19.0, which they reject as too old. A release that isn't a dotted number
 * counts as new.
 */
function readsLastDockerVersion(release: string): boolean {
  const numbers = releaseNumbers(release);
  if (numbers === undefined) return false;
  const first = firstToFormat[numbers.slice(0, 2).join(".")];
  return compareReleases(numbers, first ?? [1, 11]) < 0;
}

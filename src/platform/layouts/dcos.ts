import type { Variant } from "../../model/cluster-record.ts";
import { isMapping } from "../../system/is-mapping.ts";
import type { Layout } from "../layout.ts";

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
  testsFolder: "/opt/mesosphere/active/dcos-integration-test",
  testsPackage: "dcos-integration-test",
  bootstrapLibraryFolder: "/opt/mesosphere/active/bootstrap/lib",
  internalLibrary: "dcos_internal_utils",
  // Newest first: a release has one of them, or keeps an older one beside it under its old name.
  nodeChecks: [
    ["/opt/mesosphere/bin/dcos-check-runner", "check", "node-poststart"],
    ["/opt/mesosphere/bin/dcos-diagnostics", "check", "node-poststart"],
    ["/opt/mesosphere/bin/3dt", "--diag"],
  ],
  nodeCheckWrapper: "/opt/mesosphere/bin/dcos-shell",
  bootstrapConfigFile: "/opt/mesosphere/etc/bootstrap-config.json",
  caPath: "/ca/dcos-ca.crt",
  loginPath: "/acs/api/v1/auth/login",
  customCaKeyFile: "/var/lib/dcos/pki/tls/CA/private/custom_ca.key",
  secretFiles: ["/var/lib/dcos/dcos-oauth/auth-token-secret", "/var/lib/dcos/pki/tls/CA/private/custom_ca.key"],
  installedMarker: "/etc/systemd/system/dcos.target",
  masterPorts: [
    53, 80, 179, 443, 1050, 2181, 2379, 2380, 5050, 7070, 8080, 8101, 8123, 8181, 9000, 9942, 9990, 36771, 41281, 46839,
    61053, 61091, 62020, 62080, 62091, 62501, 64000,
  ],
  publicPorts: [80, 443, 9000, 61001],
  variablePrefixes: ["CLUSTER_", "DCOS_"],
  needs: ["bash", "curl", "tar", "xz", "docker", "unzip", "ipset", "ping"],
  needsDocker: true,
  agentsRegistered: {
    path: "/mesos/master/slaves",
    count: (body) => (isMapping(body) && Array.isArray(body["slaves"]) ? body["slaves"].length : 0),
    // An open source cluster has no login that works without a person.
    variants: ["enterprise"],
  },
};

const installedVariants: ReadonlyMap<unknown, Variant> = new Map([
  ["open", "oss"],
  ["enterprise", "enterprise"],
]);

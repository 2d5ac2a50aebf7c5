import { variants } from "../../model/cluster-record.ts";
import type { Layout } from "../layout.ts";

/** The layout of today's artifacts. */
export const clusterLayout: Layout = {
  name: "cluster",
  headVariants: { oss: "oss", enterprise: "enterprise" },
  installScript: "cluster_install.sh",
  installRoles: { master: "master", agent: "agent", public_agent: "public_agent" },
  returnEarlyFlag: "--no-block",
  setupUnits: [],
  versionFile: "/opt/cluster/etc/version.json",
  installedVariant: (body) => variants.find((variant) => variant === body["variant"]),
  environmentFile: "/opt/cluster/environment.export",
  testsFolder: "/opt/cluster/active/integration-test",
  testsPackage: "integration-test",
  bootstrapLibraryFolder: "/opt/cluster/active/bootstrap/lib",
  internalLibrary: "cluster_internal_utils",
  nodeChecks: [["/opt/cluster/bin/check", "node-poststart"]],
  nodeCheckWrapper: undefined,
  bootstrapConfigFile: "/opt/cluster/etc/bootstrap-config.json",
  caPath: "/ca/cluster-ca.crt",
  loginPath: "/acs/api/v1/auth/login",
  customCaKeyFile: "/var/lib/cluster/pki/tls/CA/private/custom_ca.key",
  secretFiles: [
    "/opt/cluster/etc/login.json",
    "/var/lib/cluster/pki/tls/CA/private/ca.key",
    "/var/lib/cluster/pki/tls/CA/private/custom_ca.key",
  ],
  installedMarker: "/etc/systemd/system/cluster.target",
  masterPorts: [80, 443],
  publicPorts: [80, 443],
  variablePrefixes: ["CLUSTER_"],
  needs: ["bash", "curl", "tar", "xz"],
  needsDocker: false,
  agentsRegistered: {
    path: "/nodes",
    count: (body) => (Array.isArray(body) ? body.length : 0),
    variants: ["oss", "enterprise"],
  },
};

/** Where the program keeps its own files on a node; root alone can read them. Scripts take them from here. */
export const installPaths = {
  folder: "/var/lib/cluster-e2e",
  /** Artifact and `genconf/`, on the first master only. No path below may hold a space: some artifacts demand it. */
  workFolder: "/var/lib/cluster-e2e/installer",
  artifact: "/var/lib/cluster-e2e/installer/artifact.sh",
  /** Its `config.yaml` must stay: other processes learn from it what to mask (cluster-secrets.ts). */
  genconf: "/var/lib/cluster-e2e/installer/genconf",
  serve: "/var/lib/cluster-e2e/installer/genconf/serve",
  bootstrapServer: "/var/lib/cluster-e2e/bootstrap-server.py",
  bootstrapSettings: "/var/lib/cluster-e2e/bootstrap.json",
  /** A line for each node that is done, by its address; at the end `finished`. */
  bootstrapState: "/var/lib/cluster-e2e/bootstrap.state",
  /** What removes the bootstrap server, and all that it served, once it has finished. */
  bootstrapEnd: "/var/lib/cluster-e2e/bootstrap-end.sh",
  /** What the install unit runs. */
  installRunner: "/var/lib/cluster-e2e/install.sh",
  /** Programs that stand in front of the node's own while the install script runs. */
  shims: "/var/lib/cluster-e2e/shims",
  installLog: "/var/lib/cluster-e2e/install.log",
  /** One line: `running`, or `exit <status>` once the install script has ended. */
  installStatus: "/var/lib/cluster-e2e/install.status",
  /** The name of the layout that is being installed. */
  layout: "/var/lib/cluster-e2e/layout",
} as const;

export const installUnits = { install: "cluster-e2e-install", bootstrap: "cluster-e2e-bootstrap" } as const;

/** The file of a unit that comes back at boot while it is enabled. */
export const unitFileOf = (unit: string): string => `/etc/systemd/system/${unit}.service`;

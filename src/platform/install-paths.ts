/** Where an artifact works on the first master. No path may contain a space: some artifacts don't accept one. */
export interface WorkPaths {
  readonly folder: string;
  readonly artifact: string;
  readonly genconf: string;
  readonly serve: string;
}

const workPathsOf = (folder: string): WorkPaths => ({
  folder,
  artifact: `${folder}/artifact.sh`,
  genconf: `${folder}/genconf`,
  serve: `${folder}/genconf/serve`,
});

/** The folder of an upgrade is removed when all nodes have the new version. */
export const installWork = workPathsOf("/var/lib/cluster-e2e/installer");
export const upgradeWork = workPathsOf("/var/lib/cluster-e2e/upgrade");

/**
 * The program's own files on a node, which only root can read, and some of the system. Scripts take
 * the paths from here.
 */
export const installPaths = {
  folder: "/var/lib/cluster-e2e",
  /** Its `config.yaml` must stay, because cluster-secrets.ts and upgrades read it. */
  genconf: installWork.genconf,
  bootstrapServer: "/var/lib/cluster-e2e/bootstrap-server.py",
  bootstrapSettings: "/var/lib/cluster-e2e/bootstrap.json",
  /** Holds one line with the address of each finished node, and `finished` at the end. */
  bootstrapState: "/var/lib/cluster-e2e/bootstrap.state",
  /** Removes the bootstrap server and everything that it served, once it has finished. */
  bootstrapEnd: "/var/lib/cluster-e2e/bootstrap-end.sh",
  /** The script that the install unit runs. */
  installRunner: "/var/lib/cluster-e2e/install.sh",
  /** Programs that replace the node's own while the install script runs. */
  shims: "/var/lib/cluster-e2e/shims",
  installLog: "/var/lib/cluster-e2e/install.log",
  /** One line: `running`, or `exit <status>` once the install script has ended. */
  installStatus: "/var/lib/cluster-e2e/install.status",
  /** The three files of the node's last upgrade, like those of the installation above. */
  upgradeRunner: "/var/lib/cluster-e2e/upgrade.sh",
  upgradeLog: "/var/lib/cluster-e2e/upgrade.log",
  upgradeStatus: "/var/lib/cluster-e2e/upgrade.status",
  /** Two lines: the version before that upgrade, and its target version. */
  upgradeVersions: "/var/lib/cluster-e2e/upgrade.versions",
  /** On the first master; see upgrade-lock.sh. */
  upgradeLock: "/var/lib/cluster-e2e/upgrade.lock",
  /** Names the kernel modules that the platform needs. */
  modules: "/etc/modules-load.d/cluster-e2e.conf",
  /** Holds the name of the layout that is being installed. */
  layout: "/var/lib/cluster-e2e/layout",
  /** The system's own file with the variables of every login, such as a proxy. */
  loginEnvironment: "/etc/environment",
} as const;

export const installUnits = {
  install: "cluster-e2e-install",
  bootstrap: "cluster-e2e-bootstrap",
  upgrade: "cluster-e2e-upgrade",
} as const;

/** Returns the file of a unit that starts again at boot while it is enabled. */
export const unitFileOf = (unit: string): string => `/etc/systemd/system/${unit}.service`;

/** What a Docker or Podman says, in its own form. */
export interface EngineAnswer {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  /** It ends as if it had been killed. */
  readonly isKilled: boolean;
}

export const answered = (stdout: string): EngineAnswer => ({
  status: 0,
  stdout,
  stderr: "",
  isKilled: false,
});
const prefixes = { docker: "Error response from daemon", podman: "Error" } as const;

export const refusalBy =
  (name: ScriptedEngineName) =>
  (said: string): EngineAnswer => ({
    status: name === "docker" ? 1 : 125,
    stdout: "",
    stderr: `${prefixes[name]}: ${said}\n`,
    isKilled: false,
  });

/** What each engine says of itself, in its own form. */
export const information = {
  docker: {
    ServerVersion: "24.0.7",
    OperatingSystem: "Debian",
    Architecture: "x86_64",
    CgroupDriver: "systemd",
    CgroupVersion: "2",
    MemoryLimit: true,
    CpuCfsQuota: true,
    Driver: "overlay2",
    DockerRootDir: "/var/lib/docker",
    MemTotal: 8e9,
  },
  podman: {
    host: {
      arch: "amd64",
      cgroupControllers: ["cpuset", "cpu", "io", "memory", "pids"],
      cgroupManager: "systemd",
      cgroupVersion: "v2",
      security: { rootless: false },
      serviceIsRemote: false,
      distribution: { distribution: "debian", version: "12" },
      memTotal: 8e9,
    },
    store: { graphDriverName: "overlay", graphRoot: "/var/lib/containers/storage" },
    version: { Version: "4.9.3" },
  },
} as const;

export type ScriptedEngineName = keyof typeof information;

import { platform, release } from "node:os";
import type { EngineFacts, EngineKind, EngineLocation, EngineName } from "./engine-kind.ts";
import { anyMapping, anything, field, isMapping, list } from "../../../model/reader.ts";

/** Docker's names for its machine, which are the kernel's, and what its images say. */
const imageArchitectures: Readonly<Record<string, string>> = { x86_64: "amd64", aarch64: "arm64" };

/** The engine's configuration may ask for the opposite: systemd must be the first process, and `sudo` must work. */
const asMachine = ["--init=false", "--security-opt=no-new-privileges=false"];

/** Podman's `containers.conf` may share them with the computer, or give each container other users. */
const ownNamespaces = ["--userns=host", "--pid=private", "--ipc=private", "--uts=private"];

/** Docker's command line from version 20 on. */
const docker: EngineKind = {
  name: "docker",
  title: "Docker",
  // The first version with cgroups 2.
  leastVersion: [20, 10],
  probe: ["version", "--format={{json .}}"],
  isOwnAnswer: (answer) => {
    const { Server } = answer as DockerVersion;
    return (Server?.Components ?? []).some(({ Name }) => Name === "Engine");
  },
  readFacts: (information) => {
    const info = information as DockerInformation;
    const has = (name: string): boolean =>
      (info.SecurityOptions ?? []).some((option) => option.split(",").includes(`name=${name}`));
    return {
      version: info.ServerVersion ?? "",
      operatingSystem: info.OperatingSystem ?? "",
      architecture: imageArchitectures[info.Architecture ?? ""] ?? info.Architecture ?? "",
      location: dockerLocation(info),
      cgroupVersion: info.CgroupVersion === "2" ? "2" : "1",
      cgroupManager: info.CgroupDriver ?? "",
      isRootless: has("rootless"),
      hasAppArmor: has("apparmor"),
      hasSelinux: has("selinux"),
      hasRemappedUsers: has("userns"),
      hasContainerdStore: (info.DriverStatus ?? []).some(
        ([, value]) => value === "io.containerd.snapshotter.v1",
      ),
      storageDriver: info.Driver ?? "",
      hasUsualRanges: (info.DefaultAddressPools ?? []).length === 0,
      rootFolder: info.DockerRootDir ?? "",
      memoryBytes: info.MemTotal ?? 0,
      // What isn't said doesn't count as working.
      idleLimits: [
        ...(info.MemoryLimit === true ? [] : (["memory"] as const)),
        ...(info.CpuCfsQuota === true ? [] : (["cpus"] as const)),
      ],
      userCount: undefined,
    };
  },
  readNetwork: (description) => {
    const { Id, Name, Labels, IPAM, Options } = isMapping(description) ? description : {};
    const ranges = field("Config", list(field("Subnet", anything)))(IPAM);
    const options = anyMapping(Options);
    // Docker's own name has a part of the network's id, which is random.
    const usual = typeof Id === "string" ? `br-${Id.slice(0, 12)}` : undefined;
    const bridge = options?.["com.docker.network.bridge.name"] ?? usual;
    return { id: Id, name: Name, labels: Labels, ranges, options, bridge };
  },
  systemWords: asMachine,
  consoleWords: ["--log-driver=json-file", "--log-opt=max-size=2m", "--log-opt=max-file=2"],
  limits: [[]],
  variables: {
    // Usual on Apple's computers: images of another architecture than the engine's.
    DOCKER_DEFAULT_PLATFORM: [],
    // Images that were built here have no signature. What comes from a registry may need one.
    DOCKER_CONTENT_TRUST: ["build", "pull"],
    DOCKER_CONTENT_TRUST_SERVER: ["build", "pull"],
    // Another builder keeps what it builds for itself.
    BUILDX_BUILDER: "default",
    BUILDX_NO_DEFAULT_LOAD: [],
    BUILDX_NO_DEFAULT_OUTPUT: [],
    BUILDKIT_PROGRESS: "plain",
    DOCKER_BUILDKIT: [],
  },
  restartWords: ["update", "--restart=on-failure"],
  removeWords: ["rm", "--force", "--volumes"],
  ownVolumeWord: (path, label) => `--mount=type=volume,target=${path},volume-label=${label}`,
  untagWords: (name) => ["image", "rm", "--force", "--no-prune", name],
  saveWords: ["save"],
  litteredFolder: undefined,
  // Containerd's image store, whose drivers have other names, doesn't know layers.
  knowsLayers: ({ storageDriver }) => storageDriver === "overlay2",
  defaultNetwork: { name: "bridge", isRenewed: true, mtuOption: "com.docker.network.driver.mtu" },
  offlineWords: ["--internal"],
  grantsAddresses: false,
  advice: {
    install:
      "Install Docker, version 20.10 or later: https://docs.docker.com/engine/install/\nOn Debian and Ubuntu:\n    sudo apt-get install docker.io",
    forbidden:
      "If you run a rootless Docker, set DOCKER_HOST=unix://$XDG_RUNTIME_DIR/docker.sock. Else join the group docker, then log in again:\n    sudo usermod -aG docker $USER",
    silent:
      "Start it: sudo systemctl start docker; on macOS, start Docker Desktop or its equivalent. If another Docker is meant, set DOCKER_HOST, such as unix://$XDG_RUNTIME_DIR/docker.sock for a rootless one.",
    rootless:
      "Boot this computer with cgroups 2, or use the system's Docker: unset DOCKER_HOST, or run: docker context use default",
    session:
      "Start it as a service of this user, without native.cgroupdriver in its daemon.json: systemctl --user restart docker",
    users: "systemctl --user restart docker",
    storage:
      'Use overlay2: {"storage-driver": "overlay2"} in /etc/docker/daemon.json; images must then be rebuilt.',
  },
};

/** Podman's command line from version 4.0. It has no daemon: on Linux its own program does everything. */
const podman: EngineKind = {
  name: "podman",
  title: "Podman",
  // The first version that removes running containers without waiting.
  leastVersion: [4, 0],
  probe: ["info", "--format={{json .}}"],
  isOwnAnswer: (answer) => (answer as PodmanInformation).host !== undefined,
  readFacts: (information) => {
    const { host = {}, store = {}, version = {} } = information as PodmanInformation;
    const { distribution = {}, security = {} } = host;
    return {
      version: version.Version ?? "",
      operatingSystem: [distribution.distribution, distribution.version].filter(Boolean).join(" "),
      architecture: host.arch ?? "",
      location: podmanLocation(host),
      cgroupVersion: host.cgroupVersion === "v2" ? "2" : "1",
      cgroupManager: host.cgroupManager ?? "",
      isRootless: isRootless(host),
      hasAppArmor: security.apparmorEnabled ?? false,
      hasSelinux: security.selinuxEnabled ?? false,
      hasRemappedUsers: false,
      hasContainerdStore: false,
      storageDriver: store.graphDriverName ?? "",
      hasUsualRanges: false,
      rootFolder: store.graphRoot ?? "",
      memoryBytes: host.memTotal ?? 0,
      idleLimits: isRootless(host) ? idleLimits(host) : [],
      userCount: userCount(host),
    };
  },
  readNetwork: (description) => {
    const { id, name, labels, subnets, options, network_interface } = isMapping(description)
      ? description
      : {};
    return {
      id,
      name,
      labels,
      ranges: list(field("subnet", anything))(subnets),
      options: anyMapping(options),
      bridge: network_interface,
    };
  },
  // Podman prepares containers for systemd with some commands only, so the nodes are prepared in the same way as for
  // Docker.
  // A machine has no limit of 2,048 processes. With -1, crun 1.21 wants the controller of
  // processes, which a rootless Podman may lack.
  systemWords: [...asMachine, "--systemd=false", "--pids-limit=0", ...ownNamespaces],
  consoleWords: ["--log-driver=k8s-file", "--log-opt=max-size=4mb"],
  // Root's containers get a million files and processes, which root may not grant without CAP_SYS_RESOURCE.
  limits: [[], ["--ulimit=nofile=1024:4096", "--ulimit=nproc=4096:4096"]],
  // Root's nodes need root's user namespace.
  variables: { PODMAN_USERNS: [], BUILDAH_FORMAT: [] },
  // Before version 5.1, `update` can't. At its creation, a node that never boots would get it too.
  restartWords: undefined,
  // Without a time, Podman would ask the system inside to shut down and wait for that.
  removeWords: ["rm", "--force", "--volumes", "--time=0"],
  // It has no labels for such a volume.
  ownVolumeWord: (path) => `--volume=${path}`,
  // With --force, `image rm` would remove the containers too. Without the second word, `untag` takes all names.
  untagWords: (name) => ["untag", name, name],
  knowsLayers: () => false,
  saveWords: ["save", "--quiet", "--format=docker-archive", "--multi-image-archive"],
  // Seen with Podman 4.3.
  litteredFolder: "/var/tmp",
  defaultNetwork: { name: "podman", isRenewed: false, mtuOption: "mtu" },
  // An internal network gives this computer no address, so it could not reach the nodes. Seen with Podman 4.3.
  offlineWords: ["--disable-dns"],
  grantsAddresses: true,
  advice: {
    install:
      "Install Podman, version 4.0 or later: https://podman.io/docs/installation\nOn Debian and Ubuntu:\n    sudo apt-get install podman",
    forbidden: "Use it as root: sudo cluster-container …",
    silent:
      "On macOS, run: podman machine start. Elsewhere, check whether CONTAINER_HOST points to a Podman that is running.",
    rootless:
      "Boot this computer with cgroups 2, or run this program as root: sudo cluster-container …",
    session:
      "Keep this user's systemd running, and name its folder in shells of su and sudo:\n    sudo loginctl enable-linger $USER && export XDG_RUNTIME_DIR=/run/user/$(id -u)",
    users: "podman system migrate",
    storage:
      'Use overlay: driver = "overlay" in /etc/containers/storage.conf; images must then be rebuilt.',
  },
};

export const engineKinds: Readonly<Record<EngineName, EngineKind>> = { docker, podman };

/** On Linux, an engine with another kernel isn't on this machine. Elsewhere, engines run in virtual machines. */
function dockerLocation({ OperatingSystem, KernelVersion }: DockerInformation): EngineLocation {
  if (OperatingSystem === "Docker Desktop") return "virtual-machine";
  const isOther = KernelVersion !== undefined && KernelVersion !== release();
  return platform() === "linux" && isOther ? "elsewhere" : "unknown";
}

/**
 * A `podman machine` runs Fedora CoreOS. Nothing that a service says proves that it is on this
 * computer: two computers may have the same name and kernel, and networks of Podman have the same
 * bridges everywhere.
 */
function podmanLocation({ serviceIsRemote, distribution }: PodmanHost): EngineLocation {
  if (serviceIsRemote === false) return "here";
  return distribution?.variant === "coreos" ? "virtual-machine" : "service";
}

/** What isn't known doesn't count as root's. */
const isRootless = ({ security }: PodmanHost): boolean => security?.rootless !== false;

/** What isn't known doesn't count as delegated. */
const idleLimits = ({ cgroupControllers }: PodmanHost): EngineFacts["idleLimits"] => [
  ...(cgroupControllers?.includes("memory") === true ? [] : (["memory"] as const)),
  ...(cgroupControllers?.includes("cpu") === true ? [] : (["cpus"] as const)),
];

/** The smaller number of users and groups that Podman maps; root's has no mappings. */
function userCount({ idMappings }: PodmanHost): number | undefined {
  const counts = [idMappings?.uidmap, idMappings?.gidmap].flatMap((ranges) =>
    ranges === undefined || ranges === null
      ? []
      : [ranges.reduce((sum, { size = 0 }) => sum + size, 0)],
  );
  return counts.length === 0 ? undefined : Math.min(...counts);
}

interface DockerVersion {
  readonly Server?: { readonly Components?: readonly { readonly Name?: string }[] | null } | null;
}

interface DockerInformation {
  readonly ServerVersion?: string;
  readonly OperatingSystem?: string;
  readonly Architecture?: string;
  readonly KernelVersion?: string;
  readonly CgroupDriver?: string;
  readonly CgroupVersion?: string;
  readonly SecurityOptions?: readonly string[] | null;
  readonly DefaultAddressPools?: readonly unknown[] | null;
  readonly Driver?: string;
  readonly DriverStatus?: readonly (readonly string[])[] | null;
  readonly DockerRootDir?: string;
  readonly MemTotal?: number;
  readonly MemoryLimit?: boolean;
  readonly CpuCfsQuota?: boolean;
}

interface PodmanHost {
  readonly arch?: string;
  readonly cgroupControllers?: readonly string[] | null;
  readonly cgroupManager?: string;
  readonly cgroupVersion?: string;
  readonly distribution?: {
    readonly distribution?: string;
    readonly variant?: string;
    readonly version?: string;
  };
  readonly idMappings?: Readonly<
    Record<"uidmap" | "gidmap", readonly { readonly size?: number }[] | null>
  >;
  readonly memTotal?: number;
  readonly security?: {
    readonly apparmorEnabled?: boolean;
    readonly rootless?: boolean;
    readonly selinuxEnabled?: boolean;
  };
  readonly serviceIsRemote?: boolean;
}

interface PodmanInformation {
  readonly host?: PodmanHost;
  readonly store?: { readonly graphDriverName?: string; readonly graphRoot?: string };
  readonly version?: { readonly Version?: string };
}

import { randomBytes } from "node:crypto";
import { expect, test } from "bun:test";
import { hostname, platform as thisPlatform, release } from "node:os";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { assertLimitsWork } from "../../../../../src/backend/container/engine/assert-usable.ts";
import {
  findReach,
  labelledReach,
} from "../../../../../src/backend/container/engine/find-reach.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { engineAddress } from "../../../../../src/backend/container/engine/passage.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const { docker, podman } = engineKinds;

/** What version 4.3.1 said on Debian 12, shortened. */
const podmanSays = {
  host: {
    arch: "amd64",
    cgroupManager: "systemd",
    cgroupVersion: "v1",
    distribution: { distribution: "debian", version: "12", codename: "bookworm" },
    hostname: "vm",
    kernel: "6.1.0-28-amd64",
    memTotal: 25276502016,
    security: { apparmorEnabled: false, rootless: false, selinuxEnabled: false },
    serviceIsRemote: false,
  },
  store: { graphDriverName: "overlay", graphRoot: "/var/lib/containers/storage" },
  version: { APIVersion: "4.3.1", Version: "4.3.1", OsArch: "linux/amd64" },
};

/** As a rootless Podman on Debian says it, whose user has the usual range, and no controller of CPUs. */
const rootless = {
  cgroupVersion: "v2",
  cgroupControllers: ["memory", "pids"],
  security: { rootless: true },
  idMappings: {
    gidmap: [
      { container_id: 0, host_id: 1000, size: 1 },
      { container_id: 1, host_id: 100_000, size: 65_536 },
    ],
    uidmap: [
      { container_id: 0, host_id: 1000, size: 1 },
      { container_id: 1, host_id: 100_000, size: 65_536 },
    ],
  },
};

const podmanWith = (host: Readonly<Record<string, unknown>>) =>
  podman.readFacts({ ...podmanSays, host: { ...podmanSays.host, ...host } });

test("Docker's facts are read from what it says of itself", () => {
  const says = {
    ServerVersion: "20.10.24+dfsg1",
    OperatingSystem: "Debian GNU/Linux 12 (bookworm)",
    Architecture: "x86_64",
    CgroupDriver: "systemd",
    CgroupVersion: "2",
    SecurityOptions: ["name=apparmor", "name=seccomp,profile=default", "name=rootless"],
    Driver: "overlay2",
    DockerRootDir: "/var/lib/docker",
    MemTotal: 25276502016,
    MemoryLimit: true,
    CpuCfsQuota: true,
  };
  expect(docker.readFacts(says)).toEqual({
    version: "20.10.24+dfsg1",
    operatingSystem: "Debian GNU/Linux 12 (bookworm)",
    architecture: "amd64",
    location: "unknown",
    cgroupVersion: "2",
    cgroupManager: "systemd",
    isRootless: true,
    hasAppArmor: true,
    hasSelinux: false,
    hasRemappedUsers: false,
    hasContainerdStore: false,
    storageDriver: "overlay2",
    hasUsualRanges: true,
    rootFolder: "/var/lib/docker",
    memoryBytes: 25276502016,
    idleLimits: [],
    userCount: undefined,
  });
  expect(docker.readFacts({ ...says, OperatingSystem: "Docker Desktop" }).location).toBe(
    "virtual-machine",
  );
  expect(docker.readFacts({ ...says, KernelVersion: release() }).location).toBe("unknown");
  expect(docker.readFacts({ ...says, DefaultAddressPools: [{}] }).hasUsualRanges).toBe(false);
  const desktop = { ...says, OperatingSystem: "Docker Desktop", KernelVersion: "6.6-linuxkit" };
  expect(docker.readFacts(desktop).location).toBe("virtual-machine");
});

test("Podman's facts are read from what it says of itself", () => {
  expect(podman.readFacts(podmanSays)).toEqual({
    version: "4.3.1",
    operatingSystem: "debian 12",
    architecture: "amd64",
    location: "here",
    cgroupVersion: "1",
    cgroupManager: "systemd",
    isRootless: false,
    hasAppArmor: false,
    hasSelinux: false,
    hasRemappedUsers: false,
    hasContainerdStore: false,
    storageDriver: "overlay",
    hasUsualRanges: false,
    rootFolder: "/var/lib/containers/storage",
    memoryBytes: 25276502016,
    idleLimits: [],
    userCount: undefined,
  });
  const other = podmanWith({
    cgroupVersion: "v2",
    security: { apparmorEnabled: true, rootless: true, selinuxEnabled: true },
  });
  expect(other).toMatchObject({
    cgroupVersion: "2",
    isRootless: true,
    hasAppArmor: true,
    hasSelinux: true,
  });
});

test.each([
  [
    "podman machine",
    { distribution: { distribution: "fedora", variant: "coreos" } },
    "virtual-machine",
  ],
  ["a service, even of this computer's name and kernel", {}, "service"],
])(
  "where a Podman runs that is asked through %s is told by what it says of its machine",
  (_, host, location) => {
    const here = { hostname: hostname(), kernel: release() };
    expect(podmanWith({ serviceIsRemote: true, ...here, ...host }).location as string).toBe(
      location,
    );
  },
);

test.each([
  ["Docker's", { Client: {}, Server: { Components: [{ Name: "Engine" }] } }, true],
  ["Docker's that speaks to nobody", { Client: {}, Server: null }, false],
  [
    "Docker's that speaks to Podman through a tunnel",
    { Client: {}, Server: { Version: "4.3.1" } },
    false,
  ],
  ["containerd's", { Client: {}, Server: { Components: [{ Name: "containerd" }] } }, false],
  [
    "Podman's under Docker's name",
    { Client: { APIVersion: "4.3.1", OsArch: "linux/amd64" } },
    false,
  ],
  [
    "Docker's that speaks to Podman",
    { Client: {}, Server: { Components: [{ Name: "Podman Engine" }] } },
    false,
  ],
])("a docker whose answer is %s is known for what it is", (_, answer, isOwn) => {
  expect(docker.isOwnAnswer(answer)).toBe(isOwn);
});

test("both describe networks in words of their own", () => {
  const Labels = { "cluster-e2e.cluster-id": "a", "cluster-e2e.creation-id": "b", other: "c" };
  const network = { id: "0123", name: "n", labels: Labels };
  expect(docker.readNetwork({ Id: "0123456789abcdef", Name: "n", Labels })).toEqual({
    ...network,
    id: "0123456789abcdef",
    bridge: "br-0123456789ab",
  });
  const Options = { "com.docker.network.bridge.name": "docker0" };
  expect(docker.readNetwork({ Id: "0123", Options }).bridge).toBe("docker0");
  expect(podman.readNetwork({ id: "0123", network_interface: "podman1" }).bridge).toBe("podman1");
  expect(podman.readNetwork({ id: "0123", name: "n", labels: Labels })).toEqual(network);
  expect(podman.readNetwork({ id: "0123", name: "n" })).toEqual({
    id: "0123",
    name: "n",
    labels: undefined,
  });
  expect(docker.readNetwork("nonsense")).toEqual({
    id: undefined,
    name: undefined,
    labels: undefined,
  });
});

const unasked = async (): Promise<never> => Promise.reject(new Error("nothing is asked"));
const engine = (kind: Engine["kind"]): Engine => ({
  kind,
  option: "",
  ask: unasked,
  change: unasked,
  read: () => {
    throw new Error("nothing is read");
  },
  defer: async () => ({ run: unasked }),
});

test.each([
  ["here", "linux", {}, "direct"],
  ["that does not say where", "linux", { serviceIsRemote: undefined }, "engine"],
  [
    "in a podman machine on macOS",
    "darwin",
    { serviceIsRemote: true, distribution: { variant: "coreos" } },
    "engine",
  ],
  [
    "in a podman machine on Linux",
    "linux",
    { serviceIsRemote: true, distribution: { variant: "coreos" } },
    "engine",
  ],
] as const)("nodes of a Podman %s are reached as they can be", async (_, platform, host, reach) => {
  expect(await findReach(engine(podman), podmanWith(host), platform, neverAborted)).toMatchObject({
    reach,
  });
});

test.each([
  [
    "a remote Podman",
    { serviceIsRemote: true, hostname: "far" },
    "Podman is used through its service",
  ],
  [
    "a rootless Podman",
    { security: { rootless: true }, cgroupVersion: "v2" },
    "Podman runs rootless, with a network of its own",
  ],
])("nodes of %s are reached through it", async (_, host, why) => {
  const found = await findReach(engine(podman), podmanWith(host), "linux", neverAborted);
  expect(found).toEqual({ reach: "engine", why });
});

test("a Docker with userns-remap is refused with the true reason", async () => {
  const facts = docker.readFacts({ CgroupVersion: "2", SecurityOptions: ["name=userns"] });
  const error = await failureOf(findReach(engine(docker), facts, "linux", neverAborted));
  expect(error).toMatchObject({ id: "machine-not-set-up" });
  expect(error.message).toContain("has userns-remap");
});

test("Docker says that its images are containerd's", () => {
  const DriverStatus = [["driver-type", "io.containerd.snapshotter.v1"]];
  const { hasContainerdStore } = docker.readFacts({ Driver: "overlayfs", DriverStatus });
  expect(hasContainerdStore).toBe(true);
});

test("a rootless Podman under cgroups 1 is refused with the true reason", async () => {
  const facts = podmanWith({ security: { rootless: true }, cgroupVersion: "v1" });
  const error = await failureOf(findReach(engine(podman), facts, "linux", neverAborted));
  expect(error.id).toBe("machine-not-set-up");
  expect(error.message).toContain("Podman runs rootless under cgroups 1 here");
  expect(error.hint).toContain("sudo cluster-container");
});

test.each([
  [podman, podmanWith({ ...rootless, cgroupManager: "cgroupfs" }), "XDG_RUNTIME_DIR"],
  [podman, podmanWith({ ...rootless, cgroupManager: undefined }), "XDG_RUNTIME_DIR"],
  [
    docker,
    docker.readFacts({
      CgroupDriver: "none",
      CgroupVersion: "2",
      SecurityOptions: ["name=rootless"],
    }),
    "systemctl --user",
  ],
])(
  "%# a rootless engine without its user's systemd is refused with the remedy",
  async (kind, facts, remedy) => {
    const error = await failureOf(findReach(engine(kind), facts, "linux", neverAborted));
    expect(error).toMatchObject({
      id: "machine-not-set-up",
      facts: { cgroupManager: facts.cgroupManager },
    });
    expect(error.hint).toContain(remedy);
  },
);

test.skipIf(thisPlatform() !== "linux")(
  "a Docker with another kernel than this Linux is elsewhere",
  () => {
    expect(
      docker.readFacts({ OperatingSystem: "Debian GNU/Linux 12", KernelVersion: "5.0-far" })
        .location,
    ).toBe("elsewhere");
  },
);

/** How the nodes of a Docker are reached that has these networks of its users. */
const wayTo = async (
  networks: readonly { readonly Id?: string }[],
  platform: NodeJS.Platform = "linux",
) => {
  const ask: Engine["ask"] = async ({ words: [, command] }) =>
    Promise.resolve(
      command === "ls" ? networks.map(({ Id }) => Id).join("\n") : JSON.stringify(networks),
    );
  const facts = docker.readFacts({ OperatingSystem: "Debian GNU/Linux 12" });
  return await findReach({ ...engine(docker), ask }, facts, platform, neverAborted);
};
const random = (): string => randomBytes(32).toString("hex");

test("nodes of a Docker none of whose networks has its bridge here are reached through it", async () => {
  expect(await wayTo([{ Id: random() }, { Id: random() }])).toEqual({
    reach: "engine",
    why: "Docker's bridges are not on this computer",
  });
});

test.each([
  ["has no network yet", []],
  [
    "has only networks whose bridges were named by somebody, as elsewhere",
    [{ Id: random(), Options: { "com.docker.network.bridge.name": "lo" } }],
  ],
  ["describes its networks as nobody does", [{ Id: "\u001B[2J" }, {}]],
])("where the nodes of a Docker are that %s isn't known", async (_, networks) => {
  expect(await wayTo(networks)).toEqual({
    reach: "unknown",
    why: "Docker has no network yet that would show where it runs",
  });
});

test.each([
  ["direct", "direct"],
  ["engine", "engine"],
  ["unknown", "direct"],
] as const)("a cluster reached %s gets the label %s", (reach, label) => {
  expect(labelledReach({ reach })).toBe(label);
});

test("on a Mac, nodes are reached through the engine", async () => {
  expect(await wayTo([], "darwin")).toEqual({
    reach: "engine",
    why: "Docker runs in a virtual machine",
  });
});

test.each([
  [docker, {}, ""],
  [docker, { DOCKER_HOST: "tcp://far:2376", DOCKER_CONTEXT: "away" }, "DOCKER_HOST=tcp://far:2376"],
  [docker, { DOCKER_CONTEXT: "away" }, "DOCKER_CONTEXT=away"],
  [docker, { DOCKER_HOST: "ssh://me@far" }, "DOCKER_HOST=ssh://me@far"],
  [
    podman,
    { CONTAINER_HOST: "ssh://root:secret@far/run/podman.sock" },
    "CONTAINER_HOST=ssh://***@far/run/podman.sock",
  ],
])("%# the address of an engine is named without a secret", (kind, variables, expected) => {
  expect(engineAddress(kind, { HOME: "/nonexistent", ...variables })).toBe(expected);
});

const withoutLimits = { memory: undefined, cpus: undefined };

test.each([
  [podman, podmanWith(rootless), ["cpus"]],
  [podman, podmanWith({ ...rootless, cgroupControllers: ["cpu", "io", "memory", "pids"] }), []],
  [podman, podmanWith({ ...rootless, cgroupControllers: null }), ["memory", "cpus"]],
  // Root's Podman has them all, whatever it lists.
  [podman, podmanWith({ cgroupControllers: [] }), []],
  [docker, docker.readFacts({ MemoryLimit: true, CpuCfsQuota: false }), ["cpus"]],
  // With CgroupDriver "none".
  [docker, docker.readFacts({ MemoryLimit: false, CpuCfsQuota: false }), ["memory", "cpus"]],
  [docker, docker.readFacts({ MemoryLimit: true, CpuCfsQuota: true }), []],
  [docker, docker.readFacts({}), ["memory", "cpus"]],
  // It doesn't say whether it is rootless.
  [podman, podmanWith({ security: {} }), ["memory", "cpus"]],
] as const)("%# only limits without control groups are refused", (kind, facts, refused) => {
  assertLimitsWork(kind, facts, withoutLimits);
  const given = { memory: "2g", cpus: "2" };
  const idle = (["memory", "cpus"] as const).filter((name) => {
    try {
      assertLimitsWork(kind, facts, { ...withoutLimits, [name]: given[name] });
      return false;
    } catch (error) {
      expect(error).toMatchObject({ id: "machine-not-set-up", facts: { limit: name } });
      return true;
    }
  });
  expect(idle).toEqual([...refused]);
});

test("a rootless Podman needs ranges of users and groups", async () => {
  const way = async (host: object) =>
    findReach(engine(podman), podmanWith({ ...rootless, ...host }), "linux", neverAborted);
  expect((await way({})).reach).toBe("engine");
  const one = [{ container_id: 0, host_id: 1000, size: 1 }];
  const idMappings = { ...rootless.idMappings, gidmap: one };
  const error = await failureOf(way({ idMappings }));
  expect(error).toMatchObject({ id: "machine-not-set-up", facts: { users: 1 } });
  expect(error.hint).toContain("--add-subgids");
  expect((await way({ idMappings: { uidmap: null, gidmap: null } })).reach).toBe("engine");
});

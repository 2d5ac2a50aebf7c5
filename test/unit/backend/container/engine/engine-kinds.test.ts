import { expect, test } from "bun:test";
import { hostname, platform as thisPlatform, release } from "node:os";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { findReach } from "../../../../../src/backend/container/engine/choose-engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { unmarked } from "../../../../../src/outside-text.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const { docker, podman } = engineKinds;

/** What version 4.3.1 said on Debian 12, shortened. */
const podmanSays = {
  host: {
    arch: "amd64",
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

const podmanWith = (host: Readonly<Record<string, unknown>>) =>
  podman.readFacts({ ...podmanSays, host: { ...podmanSays.host, ...host } });

test("Docker's facts are read from what it says of itself", () => {
  const says = {
    ServerVersion: "20.10.24+dfsg1",
    OperatingSystem: "Debian GNU/Linux 12 (bookworm)",
    Architecture: "x86_64",
    CgroupVersion: "2",
    SecurityOptions: ["name=apparmor", "name=seccomp,profile=default", "name=rootless"],
    Driver: "overlay2",
    DockerRootDir: "/var/lib/docker",
    MemTotal: 25276502016,
  };
  expect(docker.readFacts(says)).toEqual({
    version: "20.10.24+dfsg1",
    operatingSystem: "Debian GNU/Linux 12 (bookworm)",
    architecture: "amd64",
    location: "unknown",
    cgroupVersion: "2",
    isRootless: true,
    hasAppArmor: true,
    hasSelinux: false,
    hasRemappedUsers: false,
    hasContainerdStore: false,
    storageDriver: "overlay2",
    rootFolder: "/var/lib/docker",
    memoryBytes: 25276502016,
  });
  expect(docker.readFacts({ ...says, OperatingSystem: "Docker Desktop" }).location).toBe(
    "virtual-machine",
  );
  expect(docker.readFacts({ ...says, KernelVersion: release() }).location).toBe("unknown");
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
    isRootless: false,
    hasAppArmor: false,
    hasSelinux: false,
    hasRemappedUsers: false,
    hasContainerdStore: false,
    storageDriver: "overlay",
    rootFolder: "/var/lib/containers/storage",
    memoryBytes: 25276502016,
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
  ["a service of this machine", { hostname: hostname(), kernel: release() }, "here"],
  ["a service elsewhere", { hostname: "elsewhere", kernel: "6.1.0-28-amd64" }, "elsewhere"],
  [
    "a service elsewhere with this machine's name",
    { hostname: hostname(), kernel: "6.1.0-far" },
    "elsewhere",
  ],
  [
    "a service elsewhere with this machine's kernel",
    { hostname: "elsewhere", kernel: release() },
    "elsewhere",
  ],
])(
  "where a Podman runs that is asked through %s is told by what it says of its machine",
  (_, host, location) => {
    expect(podmanWith({ serviceIsRemote: true, ...host }).location as string).toBe(location);
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
  ["a remote Podman", { serviceIsRemote: true, hostname: "far" }, "Podman runs on another machine"],
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

test.skipIf(thisPlatform() !== "linux")(
  "a Docker with another kernel than this Linux is elsewhere",
  () => {
    expect(
      docker.readFacts({ OperatingSystem: "Debian GNU/Linux 12", KernelVersion: "5.0-far" })
        .location,
    ).toBe("elsewhere");
  },
);

/** How the nodes of a Docker are reached whose default network has this bridge and these addresses. */
const wayTo = async (network: string, platform: NodeJS.Platform = "linux") => {
  const ask: Engine["ask"] = async () => Promise.resolve(network);
  const facts = docker.readFacts({ OperatingSystem: "Debian GNU/Linux 12" });
  return await findReach({ ...engine(docker), ask }, facts, platform, neverAborted);
};

test.skipIf(thisPlatform() !== "linux")(
  "nodes of a Docker are reached directly only if its bridge and its address are this machine's",
  async () => {
    const reaches = async (network: string) => (await wayTo(network)).reach;
    expect(await reaches("lo 127.0.0.1 ")).toBe("direct");
    expect(await reaches("lo fd00::1 127.0.0.1 ")).toBe("direct");
    expect(await reaches("lo ")).toBe("direct");
    const { reach, why } = await wayTo("docker9 127.0.0.1 ");
    expect([reach, unmarked(why)]).toEqual([
      "engine",
      "the bridge of its default network, docker9 127.0.0.1, is not on this machine",
    ]);
    expect(await reaches("lo 192.0.2.1 ")).toBe("engine");
    expect(await reaches("")).toBe("engine");
    expect((await wayTo("\u001B[2J::garbage")).why).not.toMatch(/\p{Cc}/u);
  },
);

test("on a Mac, nodes are reached through the engine", async () => {
  expect(await wayTo("lo 127.0.0.1", "darwin")).toEqual({
    reach: "engine",
    why: "Docker runs in a virtual machine",
  });
});

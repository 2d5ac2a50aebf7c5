import { expect, test } from "bun:test";
import { hostname, platform as thisPlatform, release } from "node:os";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { findReach } from "../../../../../src/backend/container/engine/choose-engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
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
  expect(docker.readNetwork({ Id: "0123", Name: "n", Labels })).toEqual(network);
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
    "published",
  ],
  [
    "in a podman machine on Linux",
    "linux",
    { serviceIsRemote: true, distribution: { variant: "coreos" } },
    "published",
  ],
] as const)("nodes of a Podman %s are reached as they can be", async (_, platform, host, reach) => {
  expect(await findReach(engine(podman), podmanWith(host), platform, neverAborted)).toBe(reach);
});

test.each([
  [podman, { security: { rootless: true } }, "Podman runs rootless here", "sudo cluster-container"],
  [
    podman,
    { serviceIsRemote: true, hostname: "far" },
    "Podman runs on another machine",
    "unset CONTAINER_HOST",
  ],
])("a Podman that can't serve is refused plainly: %#", async (kind, host, message, hint) => {
  const error = await failureOf(findReach(engine(kind), podmanWith(host), "linux", neverAborted));
  expect(error.id).toBe("machine-not-set-up");
  expect(error.message).toContain(message);
  expect(error.hint).toContain(hint);
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

/** A Docker that a Mac speaks to at this address. */
const dockerAt = (address: string): Engine => ({
  ...engine(docker),
  ask: async () => Promise.resolve(address),
});
const reachFromMac = async (address: string, OperatingSystem: string) =>
  findReach(dockerAt(address), docker.readFacts({ OperatingSystem }), "darwin", neverAborted);

test.each([
  ["unix:///Users/me/.docker/run/docker.sock", "Docker Desktop"],
  ["unix:///Users/me/.colima/default/docker.sock", "Ubuntu 24.04 LTS"],
  ["tcp://localhost:2375", "Docker Desktop"],
  ["tcp://127.0.0.1:2375", "Alpine Linux"],
  ["tcp://[::1]:2375", "Alpine Linux"],
  ["", "Alpine Linux"],
])("on a Mac, a Docker at %j runs in a virtual machine", async (address, system) => {
  expect(await reachFromMac(address, system)).toBe("published");
});

test("on a Mac, a Docker that can't tell its address runs in a virtual machine", async () => {
  const ask: Engine["ask"] = async ({ accepts }) => {
    if (accepts?.("unknown command: docker context") !== true)
      throw new Error("docker context failed");
    return Promise.resolve("");
  };
  const facts = docker.readFacts({ OperatingSystem: "Alpine Linux" });
  expect(await findReach({ ...engine(docker), ask }, facts, "darwin", neverAborted)).toBe(
    "published",
  );
});

test.each([
  ["127.0.0.1", "direct"],
  ["fd00::1 127.0.0.1", "direct"],
  ["", "direct"],
])(
  "on Linux, a Docker whose bridge has the address %j is on this machine",
  async (gateway, reach) => {
    const ask: Engine["ask"] = async ({ accepts }) => {
      if (gateway === "" && accepts?.("no such network") !== true)
        throw new Error("docker network failed");
      return Promise.resolve(`${gateway} `);
    };
    const facts = docker.readFacts({ OperatingSystem: "Debian GNU/Linux 12" });
    expect(await findReach({ ...engine(docker), ask }, facts, "linux", neverAborted)).toBe(
      reach as "direct",
    );
  },
);

test("on Linux, a Docker whose bridge is none of this machine's is refused plainly", async () => {
  const asking = { ...engine(docker), ask: async () => Promise.resolve("192.0.2.1 ") };
  const facts = docker.readFacts({ OperatingSystem: "Debian GNU/Linux 12" });
  expect((await failureOf(findReach(asking, facts, "linux", neverAborted))).message).toBe(
    "Docker runs on another machine: the address of its bridge, 192.0.2.1, is not an address of this machine.",
  );
});

test.each(["ssh://me@far.example", "tcp://192.0.2.1:2376", "https://far.example:2376"])(
  "on a Mac, a Docker at %s is refused plainly",
  async (address) => {
    const error = await failureOf(reachFromMac(address, "Debian GNU/Linux 12"));
    expect(error.id).toBe("machine-not-set-up");
    expect(error.message).toContain(`Docker runs on another machine: its address is ${address}.`);
    expect(error.hint).toContain("DOCKER_HOST");
  },
);

test("on a Mac, a Podman that says it is elsewhere is refused plainly, as on Linux", async () => {
  const facts = podmanWith({ serviceIsRemote: true, hostname: "far" });
  const error = await failureOf(findReach(engine(podman), facts, "darwin", neverAborted));
  expect(error.message).toContain("Podman runs on another machine: it reports a remote host.");
});

import { expect, test } from "bun:test";
import type { NodeFacts, StoredCluster } from "../../../../src/backend/vm/cluster-facts.ts";
import { ipDetect, privateAddress } from "../../../../src/backend/vm/machines/private-network.ts";
import { machineArguments, networkConfiguration } from "../../../../src/backend/vm/machines/machine-arguments.ts";
import { type Failure, type MachineLife, machineFiles } from "../../../../src/backend/vm/machines/machine-process.ts";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { parseDescription } from "../../../../src/backend/vm/qemu/firmware.ts";
import { qemuMessage } from "../../../../src/backend/vm/qemu/qemu.ts";
import { toCluster } from "../../../../src/backend/vm/records.ts";
import type { WebUi } from "../../../../src/model/cluster-record.ts";
import { unmarked } from "../../../../src/outside-text.ts";

const directory = "/state/vm/a,b-c1";

const node = (place: number): NodeFacts => ({
  id: `vm-0123abcd-${place}`,
  role: place === 0 ? "master" : "agent",
  index: Math.max(0, place - 1),
  privateAddress: privateAddress(place),
  ports: { ssh: 4000 + place, http: 5000 + place, https: 6000 + place },
});

function words(
  place: number,
  count: number,
  accelerator: "kvm" | "tcg" = "tcg",
  {
    name = "x64",
    webUi,
    cpuModel,
  }: { readonly name?: string; readonly webUi?: WebUi; readonly cpuModel?: string } = {},
): string {
  const architecture = architectureOf(name);
  const options = { memoryMegabytes: 2048, cpus: 3, diskMegabytes: 20_480, cpuModel };
  const files = machineFiles(directory, node(place));
  return machineArguments({
    architecture,
    accelerator,
    // As builds for macOS.
    isSandboxed: accelerator === "tcg",
    options,
    files,
    node: node(place),
    webUi,
    place,
    sockets: { folder: "/tmp/a,b", count },
    isOfTemplate: false,
  }).join(" ");
}

test("a machine is reached at ports of loopback, and boots from its own disk", () => {
  const line = words(0, 1);
  expect(line).toContain(
    "user,id=outside,hostfwd=tcp:127.0.0.1:4000-:22,hostfwd=tcp:127.0.0.1:5000-:80,hostfwd=tcp:127.0.0.1:6000-:443",
  );
  expect(line).toContain(`"filename":"${directory}/machines/master_0/disk.qcow2"`);
  expect(line).toContain('"discard":"unmap","cache":{"no-flush":true}');
  expect(line).toContain("-m 2048 -smp 3");
});

test("a web UI on a port of its own is reached in place of the usual one", () => {
  expect(words(0, 1, "tcg", { webUi: "http:8080/ui" })).toContain(
    "hostfwd=tcp:127.0.0.1:5000-:8080,hostfwd=tcp:127.0.0.1:6000-:443",
  );
  expect(words(0, 1, "tcg", { webUi: "https:9443/" })).toContain("127.0.0.1:5000-:80,hostfwd=tcp:127.0.0.1:6000-:9443");
});

test("a comma in a folder's name stays one", () => {
  expect(words(0, 2)).toContain("addr.path=/tmp/a,,b/socket-0");
});

test("only a real processor is shown as it is", () => {
  expect(words(0, 1, "kvm")).toContain("-accel kvm -cpu host");
  expect(words(0, 1)).toContain("-accel tcg -cpu max");
  expect(words(0, 1, "kvm", { cpuModel: "Nehalem" })).toContain("-accel kvm -cpu Nehalem,enforce");
  expect(words(0, 1, "tcg", { cpuModel: "Nehalem" })).toContain("-accel tcg -cpu Nehalem -m");
});

test("a machine has a monitor, tells of a panic, and is sandboxed where that works", () => {
  const line = words(0, 1);
  expect(line).toContain(
    "-chardev socket,id=monitor,path=monitor.sock,server=on,wait=off -mon chardev=monitor,mode=control",
  );
  expect(line).toContain("-device pvpanic -action panic=pause");
  expect(words(0, 1, "tcg", { name: "arm64" })).toContain("-device pvpanic-pci -action panic=pause");
  expect(line).toContain("-sandbox on,");
  expect(words(0, 1, "kvm")).not.toContain("-sandbox");
});

test("an ARM machine has flash memory of its own, with firmware that it can't write to", () => {
  const line = words(0, 1, "tcg", { name: "arm64" });
  expect(line).toContain("-machine virt,memory-backend=memory,pflash0=program,pflash1=variables");
  expect(line).toContain("-accel tcg -cpu neoverse-n1");
  const folder = `${directory}/machines/master_0`;
  expect(line).toContain(
    `"node-name":"program","file":{"driver":"file","filename":"${folder}/firmware.qcow2"},"read-only":true`,
  );
  expect(line).toContain(`"filename":"${folder}/firmware-variables.qcow2"},"read-only":false`);
  expect(words(0, 1)).toContain("-machine q35,memory-backend=memory ");
  expect(words(0, 1)).not.toContain("firmware");
});

/** As edk2's packages describe it. */
const description = (more: object = {}) => ({
  mapping: {
    device: "flash",
    executable: { filename: "/fw/code.fd", format: "raw" },
    "nvram-template": { filename: "/fw/vars.qcow2", format: "qcow2" },
  },
  targets: [{ architecture: "aarch64", machines: ["virt-*"] }],
  features: ["verbose-static"],
  ...more,
});

test("firmware is taken from its description", () => {
  const arm64 = architectureOf("arm64");
  expect(parseDescription(JSON.stringify(description()), arm64)).toEqual({
    program: { path: "/fw/code.fd", format: "raw" },
    variables: { path: "/fw/vars.qcow2", format: "qcow2" },
  });
  const unfit = [
    { features: ["secure-boot"] },
    { targets: [{ architecture: "x86_64", machines: ["pc-q35-*"] }] },
    { targets: "aarch64" },
    { mapping: { device: "memory", filename: "/fw/code.fd" } },
    { mapping: { device: "flash", executable: { filename: "/fw/code.fd", format: "raw" } } },
  ];
  for (const more of unfit) expect(parseDescription(JSON.stringify(description(more)), arm64)).toBeUndefined();
  expect(parseDescription("{", arm64)).toBeUndefined();
});

test("machines are this computer's kind, of two that are known", () => {
  expect(() => architectureOf("riscv64")).toThrow(
    "Virtual machines are supported on x64 and arm64, but this machine is riscv64.",
  );
});

test("every machine has its own socket to the private network", () => {
  for (const place of [0, 1, 2]) {
    const socket = `stream,id=inside,server=off,addr.type=unix,addr.path=/tmp/a,,b/socket-${place} `;
    expect(words(place, 3)).toContain(socket);
  }
  const cards = [0, 1, 2].map((place) => /netdev=inside,mac=([0-9a-f:]+)/.exec(words(place, 3))?.[1]);
  expect(new Set(cards).size).toBe(3);
});

test("a node's second network card has its private address, also that of a single node", () => {
  expect(networkConfiguration(300)).toMatchObject({
    version: 1,
    config: [{ subnets: [{ type: "dhcp" }] }, { name: "eth1", subnets: [{ address: "10.93.1.46/16" }] }],
  });
  expect(words(0, 1)).toContain(
    "-netdev hubport,id=inside,hubid=0 -netdev hubport,id=nowhere,hubid=0 -device virtio-net-pci,netdev=inside,",
  );
  expect(words(0, 1)).not.toContain("stream");
});

test("ip-detect prints the private address, not the one that all nodes have", async () => {
  const fake = `ip() { printf '%s\\n' '2: eth0    inet 10.0.2.15/24 brd x' '3: eth1    inet 10.93.0.3/16 brd x'; }`;
  const script = ipDetect.replace("#!/bin/sh", fake);
  expect(await Bun.$`sh -c ${script}`.env({ PATH: Bun.env["PATH"] }).text()).toBe("10.93.0.3\n");
  const without = await Bun.$`sh -c ${ipDetect.replace("#!/bin/sh", "ip() { :; }")}`.nothrow().quiet();
  expect(without.exitCode).toBe(1);
});

const stored: StoredCluster = {
  directory,
  facts: {
    schemaVersion: 1,
    clusterId: "a,b",
    creationId: "c1",
    variant: "oss",
    distribution: "debian-12",
    counts: { master: 1, agent: 1, public_agent: 0 },
    createdAt: "2026-01-01T00:00:00.000Z",
    createdBy: "1",
    nodes: [node(0), node(1)],
  },
};

const calm = { isRestarted: false, isAbandoned: false };
const observed = (lives: readonly MachineLife[], fate = calm) => toCluster(stored, lives, fate);

test("a cluster's state is that of its machines", () => {
  expect(observed(["running", "running"])).toMatchObject({ state: "running", region: undefined, backend: "vm" });
  expect(observed(["running", "unstarted"]).state).toBe("starting");
  expect(observed(["running", "ended"]).state).toBe("incomplete");
  expect(observed(["killed", "ended"]).state).toBe("stopped");
  expect(observed(["paused", "paused"]).state).toBe("incomplete");
});

test("why a machine ended is told apart", () => {
  const reasons = (lives: readonly MachineLife[], fate = calm) =>
    observed(lives, fate).nodes.map(({ stateReason }) => stateReason);
  expect(reasons(["ended", "killed"])).toEqual([
    "the machine powered off",
    "its QEMU was killed, perhaps because memory ran out",
  ]);
  const restarted = { isRestarted: true, isAbandoned: false };
  expect(reasons(["running", "killed"], restarted)).toEqual([undefined, "this computer has restarted since"]);
});

test("why QEMU stopped a machine is told in its own words", () => {
  const failed = (failure: Failure["failure"], said?: string) => observed([{ failure, said }, "running"]).nodes[0];
  expect(failed("internal-error", "KVM internal error. Suberror: 1; emulation failure")).toMatchObject({
    state: "ended",
    stateReason: "QEMU stopped it with an internal error (KVM internal error. Suberror: 1; emulation failure)",
  });
  expect(failed("internal-error")).toMatchObject({ stateReason: "QEMU stopped it with an internal error" });
  expect(failed("guest-panicked")).toMatchObject({ stateReason: "its kernel panicked" });
  expect(failed("crashed", "out of handles")).toMatchObject({ stateReason: "its QEMU crashed (out of handles)" });
});

test("of what QEMU wrote, the lines that say what is wrong are kept", () => {
  const written = `qemu-system-x86_64: warning: never mind
KVM internal error. Suberror: 1
extra data[0]: 0x0000000000000001
emulation failure
EAX=0000001f EBX=00000003
ES =0028 00000000 ffffffff 00c09300 DPL=0 DS   [-WA]
Code=eb de ff <cf> c3
qemu-system-x86_64: terminating on signal 15 from pid 7 (kill)
`;
  expect(unmarked(qemuMessage(written, 5)!)).toBe("KVM internal error. Suberror: 1; emulation failure");
  expect(unmarked(qemuMessage(written, 1)!)).toBe("KVM internal error. Suberror: 1");
  expect(qemuMessage("qemu-system-x86_64: warning: never mind\n", 5)).toBeUndefined();
  expect(unmarked(qemuMessage("qemu-system-x86_64: -accel kvm: failed to initialize kvm: No such file\n", 1)!)).toBe(
    "failed to initialize kvm: No such file",
  );
});

test("what a create that was killed had not started is not said to start", () => {
  const { state, nodes } = observed(["running", "unstarted"], { isRestarted: false, isAbandoned: true });
  expect(state).toBe("incomplete");
  expect(nodes[1]).toMatchObject({
    state: "ended",
    stateReason: "the machine was never started: its create was interrupted",
  });
});

test("nodes say where they are reached", () => {
  expect(observed(["running", "running"]).nodes[1]).toMatchObject({
    id: "vm-0123abcd-1",
    state: "running",
    publicAddress: undefined,
    privateAddress: "10.93.0.3",
    ssh: { host: "127.0.0.1", port: 4001, user: "e2e" },
    web: { host: "127.0.0.1", httpPort: 5001, httpsPort: 6001 },
  });
});

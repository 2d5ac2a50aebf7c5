import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { ipDetect } from "../../../../src/backend/vm/machines/private-network.ts";
import {
  networkConfiguration,
  writeInstanceId,
  writeSeed,
} from "../../../../src/backend/vm/machines/machine-arguments.ts";
import { architectureOf } from "../../../../src/backend/vm/qemu/architecture.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { directory, words, observed } from "./machine-cluster.ts";

test("machines get no route of IPv6 where this computer has none", () => {
  expect(words(0, 1, "tcg", { hasIpv6: false })).toContain("user,id=outside,ipv6=off,hostfwd=");
  expect(words(0, 1)).not.toContain("ipv6");
});

test("a machine is reached at ports of loopback, and boots from its own disk", () => {
  const line = words(0, 1);
  expect(line).toContain(
    "user,id=outside,hostfwd=tcp:127.0.0.1:4000-:22,hostfwd=tcp:127.0.0.1:5000-:80,hostfwd=tcp:127.0.0.1:6000-:443",
  );
  expect(line).toContain(`"filename":"${directory}/machines/master_0/disk.qcow2"`);
  expect(line).toContain('"discard":"unmap","cache":{"no-flush":true}');
  expect(line).toContain("-m 2048 -smp 3");
  expect(line).toContain("-object memory-backend-ram,id=memory,size=2048M");
  expect(line).not.toContain("-incoming");
});

test("a machine has a name, randomness, a console in a file, a first disk, a seed and a card to the outside", () => {
  const line = words(0, 1);
  for (const part of [
    "-name vm-0123abcd-0 -display none",
    "-device virtio-rng-pci -chardev file,id=console,path=console.pipe -serial chardev:console",
    "-device virtio-blk-pci,drive=disk,bootindex=0,werror=report -blockdev",
    `"dir":"${directory}/machines/master_0/seed","label":"cidata","read-only":true} -device virtio-blk-pci,drive=seed `,
    "-device virtio-net-pci,netdev=outside,mac=52:54:00:93:00:02,romfile= ",
    `-D qemu.txt -pidfile ${directory}/machines/master_0/qemu.pid`,
  ])
    expect(line).toContain(part);
  expect(line).toEndWith(" -daemonize");
});

const identity = [
  "-device virtio-serial-pci -chardev socket,id=identity,path=identity.sock,server=on,wait=off",
  "-device virtserialport,chardev=identity,name=org.cluster-e2e.identity",
].join(" ");

test("a template writes its memory to a file, has no ports here, and boots", () => {
  const memory = { path: "/a,b/memory", isShared: true, continues: false };
  const unreachable = { id: "template", ports: { ssh: 0, http: 0, https: 0 } };
  const line = words(0, 1, "tcg", { isOfTemplate: true, memory, node: unreachable });
  expect(line).toContain("-accel tcg,tb-size=64 -cpu max");
  expect(line).toContain("-netdev user,id=outside -device");
  expect(line).toContain(
    `-object memory-backend-file,id=memory,size=2048M,mem-path=/a,,b/memory,share=on ${identity}`,
  );
  expect(line).toContain("-device vmgenid,guid=auto -daemonize");
});

test("a copy continues from that file at an address of its own, which it keeps when it boots", () => {
  const copy = {
    isOfTemplate: true,
    memory: { path: "/memory", isShared: false, continues: true },
  };
  const [continued, booted] = [copy, { isOfTemplate: true }].map((more) =>
    words(0, 1, "kvm", more),
  );
  expect(continued).toContain("mem-path=/memory,share=off -incoming defer ");
  expect(continued).toContain("user,id=outside,hostfwd=tcp:127.0.0.1:4000-10.0.2.16:22,");
  expect(booted).toContain(
    "user,id=outside,dhcpstart=10.0.2.16,hostfwd=tcp:127.0.0.1:4000-10.0.2.16:22,",
  );
  for (const line of [continued!, booted!]) expect(line).toContain(`-accel kvm -cpu host`);
  for (const line of [continued!, booted!]) expect(line).toContain(identity);
  expect(words(0, 1, "tcg", { ...copy, name: "arm64" })).toEndWith(`${identity} -daemonize`);
});

test("a machine that continues from a snapshot of no template has none of its devices", () => {
  const line = words(0, 1, "tcg", {
    memory: { path: "/memory", isShared: false, continues: true },
  });
  expect(line).toContain("-accel tcg -cpu max");
  expect(line).toEndWith("share=off -incoming defer -daemonize");
});

test("a machine that can be saved has a device that tells its kernel of each continuation", () => {
  const options = { memoryMegabytes: 2048, cpus: 2, hasGenerationId: true };
  expect(words(0, 1, "tcg", { options })).toContain("-device vmgenid,guid=auto");
  expect(words(0, 1, "tcg", { options, name: "arm64" })).not.toContain("vmgenid");
});

test("no port of this computer leads to a machine that has another cluster's keys", () => {
  expect(words(0, 1, "tcg", { opensPortsLater: true })).not.toContain("hostfwd");
});

test("a seed has the machine's names and addresses, and is for this user alone", async () => {
  await using folder = await scratchFolder();
  const [seed, other] = [join(folder.path, "machine", "seed"), join(folder.path, "other", "seed")];
  const boot = {
    user: "e2e",
    publicKey: "ssh-ed25519 AAAA",
    hostKey: undefined,
    deadline: undefined,
  };
  for (const place of [7, 300])
    await writeSeed(seed, { instanceId: "vm-1", hostname: "agent-0", place, boot });
  for (const id of ["vm-8", "vm-9"]) await writeInstanceId(other, id);
  const read = async (path: string): Promise<unknown> => JSON.parse(await readFile(path, "utf8"));
  expect(await read(join(seed, "meta-data"))).toEqual({
    "instance-id": "vm-1",
    "local-hostname": "agent-0",
  });
  expect(await read(join(other, "meta-data"))).toEqual({ "instance-id": "vm-9" });
  expect(await read(join(seed, "network-config"))).toMatchObject({
    config: [{ mac_address: "52:54:00:93:01:2e" }, { mac_address: "52:54:00:94:01:2e" }],
  });
  expect(await readFile(join(seed, "user-data"), "utf8")).toContain("ssh-ed25519 AAAA");
  const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;
  for (const path of [seed, other]) expect(await modeOf(path)).toBe(0o700);
  for (const path of [
    "machine/seed/user-data",
    "machine/seed/network-config",
    "other/seed/meta-data",
  ])
    expect(await modeOf(join(folder.path, path))).toBe(0o600);
});

test("a web UI on a port of its own is reached in place of the usual one", () => {
  expect(words(0, 1, "tcg", { webUi: "http:8080/ui" })).toContain(
    "hostfwd=tcp:127.0.0.1:5000-:8080,hostfwd=tcp:127.0.0.1:6000-:443",
  );
  expect(words(0, 1, "tcg", { webUi: "https:9443/" })).toContain(
    "127.0.0.1:5000-:80,hostfwd=tcp:127.0.0.1:6000-:9443",
  );
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
    "-chardev socket,id=monitor,path=monitor.sock,server=on,wait=off -qmp chardev:monitor",
  );
  expect(line).toContain("-device pvpanic -action panic=pause");
  expect(words(0, 1, "tcg", { name: "arm64" })).toContain(
    "-device pvpanic-pci -action panic=pause",
  );
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
  expect(words(0, 1)).not.toContain("firmware.qcow2");
});

test("the console also gets what BIOS says; UEFI uses the serial console", () => {
  expect(words(0, 1)).toContain(
    "-chardev file,id=firmware,path=console.pipe -device isa-debugcon,iobase=0x402,chardev=firmware",
  );
  expect(words(0, 1, "tcg", { name: "arm64" })).not.toContain("isa-debugcon");
});

test("machines are this computer's kind, of two that are known", () => {
  expect(() => architectureOf("riscv64")).toThrow(
    "Virtual machines are supported on x64 and arm64, but this computer is riscv64.",
  );
});

test("every machine has its own socket to the private network", () => {
  for (const place of [0, 1, 2]) {
    const socket = `stream,id=inside,server=off,addr.type=unix,addr.path=/tmp/a,,b/socket-${place} `;
    expect(words(place, 3)).toContain(socket);
  }
  const cards = [0, 1, 2].map(
    (place) => /netdev=inside,mac=([0-9a-f:]+)/.exec(words(place, 3))?.[1],
  );
  expect(new Set(cards).size).toBe(3);
});

test("a node's second network card has its private address, also that of a single node", () => {
  expect(networkConfiguration(300)).toMatchObject({
    version: 1,
    config: [
      { subnets: [{ type: "dhcp" }] },
      { name: "eth1", subnets: [{ address: "10.93.1.46/16" }] },
    ],
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
  const without = await Bun.$`sh -c ${ipDetect.replace("#!/bin/sh", "ip() { :; }")}`
    .nothrow()
    .quiet();
  expect(without.exitCode).toBe(1);
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

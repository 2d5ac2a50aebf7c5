/** Faults of QEMU at each of its calls, and of the machines. */
import { onlySsh } from "../../support/only-ssh.ts";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Expected, Fault } from "../fault.ts";
import type { QemuFault } from "../worlds/qemu-calls.ts";
import type { VmWorld } from "../worlds/vm-world.ts";
import { endedBy, failed } from "./cloud-injections.ts";

type VmFault = Fault<VmWorld>;

const at = (name: string, fault: QemuFault, expected: Expected): VmFault => ({
  name,
  place: "qemu",
  seconds: 8,
  strike: async (world) => world.strike(fault),
  expected,
});

const calls: readonly VmFault[] = [
  at(
    "QEMU says no version",
    { call: "version", stdout: "hello" },
    failed("engine-failed", "--version"),
  ),
  at(
    "the accelerator's trial fails",
    { call: "trial", stderr: "qemu-system: -accel tcg: invalid accelerator tcg", status: 1 },
    failed("machine-not-set-up", "invalid accelerator", 5),
  ),
  at(
    "the image cannot be read",
    { call: "info", stderr: "qemu-img: Could not open 'empty.img': Permission denied" },
    failed("image-not-found", "Permission denied"),
  ),
  at(
    "the image is of another format",
    { call: "info", stdout: '{"format":"vmdk","virtual-size":1}', status: 0 },
    failed("image-not-found", "vmdk"),
  ),
  at(
    "the disk is full at the machine's disk",
    { call: "disk", stderr: "qemu-img: disk.qcow2: No space left on device" },
    failed("capacity-lacking", "disk is full"),
  ),
  at(
    "the machine's disk cannot be made",
    { call: "disk", stderr: "qemu-img: disk.qcow2: Input/output error" },
    failed("engine-failed", "Input/output error"),
  ),
  at(
    "there is no memory for the machine",
    {
      call: "start",
      stderr: "qemu-system: cannot set up guest memory 'pc.ram': Cannot allocate memory",
    },
    failed("capacity-lacking", "memory"),
  ),
  at(
    "QEMU does not start the machine",
    { call: "start", stderr: "qemu-system: Unable to open file" },
    failed("engine-failed", "Unable to open file"),
  ),
  at(
    "QEMU has no vvfat",
    { call: "features", stdout: "user\nSupported formats: qcow2", status: 0 },
    failed("machine-not-set-up", "vvfat", 5),
  ),
  at(
    "the forwarded ports stay taken",
    {
      call: "start",
      stderr: "qemu-system: Could not set up host forwarding rule 'tcp:127.0.0.1:1-:22'",
    },
    failed("engine-failed", "forwarding"),
  ),
  at(
    "QEMU starts the machine, and fails",
    { call: "start", stderr: "qemu-system: something odd", isCarriedOut: true },
    failed("engine-failed", "something odd"),
  ),
];

const lingering = { pattern: "artifact\\.sh --genconf", delayMs: 600_000 };

const when =
  (deed: (world: VmWorld, machine: number) => Promise<unknown>) =>
  async (world: VmWorld): Promise<Ended> => {
    const running = world.start(world.createWords);
    await running.said("Configure …");
    await deed(world, world.machines()[0]!);
    return running.ended;
  };

const duringConfiguration = (
  name: string,
  deed: (world: VmWorld, machine: number) => Promise<unknown>,
  says: string | RegExp,
): VmFault => ({
  name: `${name} during the configuration`,
  place: "machine",
  seconds: 20,
  strike: async (world) => {
    await world.answer(lingering);
    return world.strike();
  },
  act: when(deed),
  expected: { ...failed("machine-failed", says), withinMs: 60_000 },
});

const signalled = (signal: "SIGINT" | "SIGTERM" | "SIGKILL"): VmFault => ({
  name: `${signal} during the configuration`,
  place: "computer",
  seconds: 12,
  strike: async (world) => {
    await world.answer(lingering);
    return world.strike();
  },
  act: async (world) => {
    const running = world.start(world.createWords);
    await running.said("Configure …");
    running.interrupt(signal);
    return running.ended;
  },
  expected: endedBy(signal),
});

const machines: readonly VmFault[] = [
  duringConfiguration(
    "a machine's QEMU is killed",
    async (_, id) => process.kill(id, "SIGKILL"),
    "master_0",
  ),
  duringConfiguration(
    "a machine is switched off",
    async (_, id) => process.kill(id, "SIGTERM"),
    "master_0",
  ),
  duringConfiguration(
    "a machine's kernel panics",
    async (world) => world.enter("guest-panicked"),
    "panicked",
  ),
  duringConfiguration("a machine's disk fails", async (world) => world.enter("io-error"), "disk"),
  signalled("SIGINT"),
  signalled("SIGTERM"),
  signalled("SIGKILL"),
  {
    name: "the artifact refuses the configuration",
    place: "artifact",
    seconds: 8,
    strike: async (world) => {
      await world.answer({
        pattern: "artifact\\.sh --genconf",
        status: 1,
        stdout: "resolvers: must be a list\n",
      });
      return world.strike();
    },
    expected: failed("configuration-refused", "resolvers: must be a list"),
  },
  {
    name: "no QEMU on the PATH",
    place: "computer",
    act: async (world) =>
      world.run(world.createWords, { environment: { PATH: await onlySsh(world.folder) } }),
    expected: failed("machine-not-set-up", "qemu-system", 5),
  },
  {
    name: "the image is missing",
    place: "computer",
    act: async (world) =>
      world.run(world.createWords.map((word) => (word === "empty.img" ? "none.img" : word))),
    expected: failed("bad-usage", "none.img", 2),
  },
];

export const qemuFaults: readonly VmFault[] = [...calls, ...machines];

/** Faults of templates of machines: while one is made, and once it is there. */
import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Ended } from "../../e2e/support/executable.ts";
import type { Expected, Fault } from "../fault.ts";
import type { TemplateBehaviour } from "../worlds/qemu-calls.ts";
import type { VmWorld } from "../worlds/vm-world.ts";
import { failed, struck } from "./cloud-injections.ts";

type VmFault = Fault<VmWorld>;

const makes = "Make a template of the machines …";
const created = (...says: readonly (string | RegExp)[]): Expected => ({
  status: 0,
  says,
  keepsCluster: true,
});
const interrupted: Expected = {
  status: "SIGINT",
  id: "interrupted",
  says: [],
  keepsCluster: false,
};

/** The template's machine behaves so, and the deed is done while the program waits for it. */
const whileMade = (
  name: string,
  behaviour: Partial<TemplateBehaviour>,
  deed: (world: VmWorld, running: ReturnType<VmWorld["start"]>) => Promise<unknown>,
  expected: Expected,
): VmFault => ({
  name,
  place: "machine",
  seconds: 12,
  strike: async (world) => {
    await world.makeTemplates(behaviour);
    return world.strike();
  },
  act: async (world) => {
    const running = world.start(world.createWords);
    await running.said(makes);
    await deed(world, running);
    return running.ended;
  },
  expected,
});

async function machineOf(world: VmWorld): Promise<number> {
  for (const deadline = Date.now() + 20_000; Date.now() < deadline; await Bun.sleep(20)) {
    const [machine] = world.machines();
    if (machine !== undefined) return machine;
  }
  throw new Error("no machine was started");
}

/** A cluster made a template, which the deed changes after that cluster's end; then the next one is created. */
const onceMade = (
  name: string,
  deed: (world: VmWorld, template: string) => Promise<unknown>,
  expected: Expected,
): VmFault => ({
  name,
  place: "computer",
  seconds: 20,
  needsCluster: true,
  strike: async (world) => world.strike(),
  act: async (world): Promise<Ended> => {
    await world.endCluster();
    const [template] = await world.templates();
    await deed(world, template!);
    return world.run(world.createWords);
  },
  expected,
});

const damaged = (file: "memory" | "state" | "disk.qcow2"): VmFault =>
  onceMade(
    `a template's ${file} is damaged`,
    async (_, template) => writeFile(join(template, file), "damaged by the test"),
    created(),
  );

const madeTwice: VmFault = {
  name: "a creation is killed while it makes a template for which another one waits",
  place: "computer",
  seconds: 15,
  strike: async (world) => {
    await world.makeTemplates({ boots: false });
    return world.strike();
  },
  act: async (world) => {
    const own = join(world.folder, "other");
    await mkdir(own);
    const otherWords = world.createWords.map((word) => (word === "faulty" ? "other" : word));
    const first = world.start(otherWords, { environment: { TMPDIR: own } });
    await first.said(makes);
    const second = world.start(world.createWords);
    await second.said("Waiting for another process that makes the same template.");
    await world.makeTemplates();
    first.interrupt("SIGKILL");
    await first.ended;
    const ended = await second.ended;
    await world.run(["destroy", "-c", "other"]);
    return ended;
  },
  expected: created("Make a template of the machines: done"),
};

export const templateFaults: readonly VmFault[] = [
  whileMade(
    "a template's QEMU is killed while it boots",
    { boots: false },
    async (world) => process.kill(await machineOf(world), "SIGKILL"),
    created("No template can be used", "every machine boots"),
  ),
  whileMade(
    "a template cannot be saved",
    { canSave: false },
    async () => {},
    created("every machine boots"),
  ),
  ...(["SIGINT", "SIGKILL"] as const).map((signal) =>
    whileMade(
      `${signal} while a template boots`,
      { boots: false },
      async (world, running) => {
        await machineOf(world);
        running.interrupt(signal);
      },
      signal === "SIGINT" ? interrupted : { status: signal, says: [], keepsCluster: false },
    ),
  ),
  madeTwice,
  damaged("memory"),
  damaged("state"),
  onceMade(
    "a template is there, and QEMU is another one",
    async (world) =>
      world.strike({ call: "version", stdout: "QEMU emulator version 9.2.4", status: 0 }),
    created(),
  ),
  {
    ...onceMade(
      "a template is there, and its image is gone",
      async ({ folder }) => rename(join(folder, "empty.img"), join(folder, "moved.img")),
      failed("bad-usage", "empty.img", 2),
    ),
    strike: async ({ folder }) =>
      struck(async () => rename(join(folder, "moved.img"), join(folder, "empty.img"))),
  },
  onceMade(
    "a template is there, and the disk is full at the copy's disk",
    async (world) =>
      world.strike({ call: "disk", stderr: "qemu-img: disk.qcow2: No space left on device" }),
    failed("capacity-lacking", "disk is full"),
  ),
];

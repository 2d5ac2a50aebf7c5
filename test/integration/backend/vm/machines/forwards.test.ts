/** The connection to a machine that still has another cluster's keys, through a real QEMU whose machine stands still, and a scripted one. */
import { createConnection, createServer } from "node:net";
import { expect, test } from "bun:test";
import { connectAlone, openForwards } from "../../../../../src/backend/vm/machines/forwards.ts";
import {
  monitorOptions,
  queryRunState,
  runOnMonitor,
} from "../../../../../src/backend/vm/qemu/monitor.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { freePort } from "../../../../support/free-port.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { until } from "../../../../support/until.ts";
import { startMonitor } from "../scripted-monitor.ts";

const program = "qemu-system-x86_64";
const missing = Bun.which(program) === null ? `no ${program} here` : undefined;

/** A machine that has nothing to boot from. */
async function startMachine() {
  const folder = await scratchFolder();
  const card = ["-netdev", "user,id=outside", "-device", "virtio-net-pci,netdev=outside,romfile="];
  const words = [
    "-nodefaults",
    "-display",
    "none",
    "-accel",
    "tcg",
    "-m",
    "64",
    ...card,
    ...monitorOptions.flat(),
  ];
  const child = Bun.spawn([program, ...words], {
    cwd: folder.path,
    stdio: ["ignore", "ignore", "ignore"],
  });
  await until("QEMU answers", async () => (await queryRunState(folder.path)) === "running");
  return {
    folder: folder.path,
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Whether somebody listens there. */
const accepts = async (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection({ host: "127.0.0.1", port });
    socket.once("error", () => resolve(false)).once("connect", () => resolve(true));
    socket.once("connect", () => socket.destroy());
  });

const lone = { name: "agent_0", address: "", clock: systemClock };

test.skipIf(missing !== undefined)(
  `once we are connected to a machine with old keys, nobody else can connect, and it runs (${missing ?? "here"})`,
  async () => {
    await using machine = await startMachine();
    const port = await freePort();
    const socket = await connectAlone({ ...lone, folder: machine.folder, port }, neverAborted);
    expect([socket.destroyed, await accepts(port), await queryRunState(machine.folder)]).toEqual([
      false,
      false,
      "running",
    ]);
    socket.destroy();
    const [taken, free] = [createServer(), await freePort()];
    await new Promise<void>((resolve) => taken.listen(port, "127.0.0.1", resolve));
    const rules = [free, port].map((each) => `tcp:127.0.0.1:${each}-:22`);
    expect([await openForwards(machine.folder, rules, neverAborted), await accepts(free)]).toEqual([
      false,
      false,
    ]);
    expect(
      await failureOf(connectAlone({ ...lone, folder: machine.folder, port }, neverAborted)),
    ).toMatchObject({
      id: "connection-failed",
      transient: true,
    });
    taken.close();
    expect([await openForwards(machine.folder, rules, neverAborted), await accepts(free)]).toEqual([
      true,
      true,
    ]);
    expect(await queryRunState(machine.folder)).toBe("running");
  },
);

test.skipIf(missing !== undefined)(
  "somebody else who connects first is found out, and the machine doesn't continue",
  async () => {
    await using machine = await startMachine();
    await using folder = await scratchFolder();
    const port = await freePort();
    // Stands between us and QEMU, and connects as soon as the port is open.
    const others: ReturnType<typeof createConnection>[] = [];
    await using _ = await startMonitor(folder.path, async (command) => {
      const [answer] = await runOnMonitor(machine.folder, [command], neverAborted);
      if (JSON.stringify(command).includes("hostfwd_add"))
        await new Promise<void>((resolve) => {
          others.push(createConnection({ host: "127.0.0.1", port }, resolve));
        });
      return answer as object;
    });
    expect(
      await failureOf(connectAlone({ ...lone, folder: folder.path, port }, neverAborted)),
    ).toMatchObject({
      id: "machine-failed",
      facts: { node: "agent_0" },
    });
    expect([await accepts(port), await queryRunState(machine.folder)]).toEqual([false, "paused"]);
    for (const other of others) other.destroy();
  },
);

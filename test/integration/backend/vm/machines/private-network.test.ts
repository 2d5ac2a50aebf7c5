/** The network between machines, on a real QEMU, with sockets in place of the machines. */

import { connect } from "node:net";
import { expect, test } from "bun:test";
import { isRunning } from "../../../../../src/backend/vm/machines/machine-process.ts";
import {
  type NetworkSockets,
  networkFiles,
  socketPath,
  startNetwork,
} from "../../../../../src/backend/vm/machines/private-network.ts";
import { hostArchitecture } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { openQemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { removeCreation } from "../../../../../src/backend/vm/records.ts";
import { silentProgress, systemClock } from "../../../../../src/system/runtime.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const environment = { PATH: process.env["PATH"] ?? "" };
const qemu = openQemu({ environment, progress: silentProgress }, hostArchitecture());
const lack = Bun.which(qemu.systemName) === null ? `no ${qemu.systemName} here` : undefined;

test.skipIf(lack !== undefined)(
  `if a machine ends, the others keep their network (${lack ?? "here"})`,
  async () => {
    await using folder = await scratchFolder();
    const directory = folder.path;
    const sockets = { folder: directory, count: 3 };
    try {
      await startNetwork(qemu, { directory, sockets, isSandboxed: true, clock: systemClock }, neverAborted);
      const machines = await Promise.all([0, 1, 2].map((place) => machine(sockets, place)));
      const [first, second, third] = machines as [Machine, Machine, Machine];
      await arrives(first, "from the first", [second, third]);
      first.end();
      await arrives(second, "from the second", [third]);
      const again = await machine(sockets, 0);
      await arrives(third, "from the third", [again, second]);
    } finally {
      expect(await isRunning(networkFiles(directory))).toBe(true);
      await removeCreation(directory, { clock: systemClock, progress: silentProgress }, neverAborted);
      expect(await isRunning(networkFiles(directory))).toBe(false);
    }
  },
  30_000,
);

interface Machine {
  send(text: string): void;
  received(): string;
  end(): void;
}

/** Sends and receives frames like a machine's QEMU: each follows its length. */
async function machine(sockets: NetworkSockets, place: number): Promise<Machine> {
  const heard: Buffer[] = [];
  const socket = connect(socketPath(sockets, place));
  socket.on("data", (chunk) => heard.push(chunk));
  await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
  return {
    send: (text) => {
      const frame = Buffer.concat([
        Buffer.alloc(6, 255),
        Buffer.from([82, 84, 0, 0, 0, place, 8, 0]),
        Buffer.from(text),
      ]);
      const length = Buffer.alloc(4);
      length.writeUInt32BE(frame.length);
      socket.write(Buffer.concat([length, frame]));
    },
    received: () => Buffer.concat(heard).toString(),
    end: () => socket.destroy(),
  };
}

/** Sends a frame until it is received, because the network may not be ready yet. */
async function arrives(from: Machine, text: string, at: readonly Machine[]): Promise<void> {
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await Bun.sleep(50)) {
    from.send(text);
    if (at.every((each) => each.received().includes(text))) return;
  }
  throw new Error(`"${text}" did not arrive: ${at.map((each) => each.received()).join(" | ")}`);
}

/** The network between machines, on a real QEMU, with sockets in place of the machines. */

import { chmod, cp, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { isRunning } from "../../../../../src/backend/vm/machines/machine-process.ts";
import {
  type NetworkSockets,
  makeSocketsFolder,
  networkFiles,
  recordSockets,
  removeSockets,
  socketPath,
  socketsFolder,
  startNetwork,
} from "../../../../../src/backend/vm/machines/private-network.ts";
import { hostArchitecture } from "../../../../../src/backend/vm/qemu/architecture.ts";
import { withShortPath } from "../../../../../src/backend/vm/qemu/monitor.ts";
import { openQemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { removeCreation } from "../../../../../src/backend/vm/records.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
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
      await startNetwork(
        qemu,
        { directory, sockets, isSandboxed: true, clock: systemClock },
        neverAborted,
      );
      const machines = await Promise.all([0, 1, 2].map((place) => machine(sockets, place)));
      const [first, second, third] = machines as [Machine, Machine, Machine];
      await arrives(first, "from the first", [second, third]);
      first.end();
      await arrives(second, "from the second", [third]);
      const again = await machine(sockets, 0);
      await arrives(third, "from the third", [again, second]);
    } finally {
      expect(await isRunning(networkFiles(directory))).toBe(true);
      await removeCreation(
        { clock: systemClock, progress: silentProgress, environment: {}, signal: neverAborted },
        directory,
      );
      expect(await isRunning(networkFiles(directory))).toBe(false);
    }
  },
);

test.skipIf(lack !== undefined)(
  `a temporary folder with a long path is no obstacle to sockets (${lack ?? "here"})`,
  async () => {
    await using folder = await scratchFolder();
    const long = join(folder.path, "x".repeat(110));
    const directory = join(folder.path, "y".repeat(110));
    const usual = process.env["TMPDIR"];
    try {
      for (const path of [long, directory]) await mkdir(path);
      process.env["TMPDIR"] = long;
      const sockets = { folder: await makeSocketsFolder(directory), count: 2 };
      const plan = { directory, sockets, isSandboxed: true, clock: systemClock };
      await startNetwork(qemu, plan, neverAborted);
      const path = await withShortPath(directory, "incoming.sock", async (short) => short);
      expect(path.length).toBeLessThanOrEqual(103);
    } finally {
      if (usual === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = usual;
      await removeCreation(
        { clock: systemClock, progress: silentProgress, environment: {}, signal: neverAborted },
        directory,
      );
    }
    expect(await socketsFolder(directory)).toBe("");
  },
);

test("a folder that another user has made in place of that of the sockets is neither used nor touched", async () => {
  await using folder = await scratchFolder();
  const [sockets, elsewhere] = [
    join(folder.path, "cluster-e2e-aBcD12"),
    join(folder.path, "elsewhere"),
  ];
  await recordSockets(folder.path, sockets);
  await mkdir(elsewhere, { mode: 0o700 });
  await writeFile(join(elsewhere, "socket-0"), "");
  const openToAll = async (): Promise<void> => {
    await cp(elsewhere, sockets, { recursive: true });
    await chmod(sockets, 0o777);
  };
  for (const change of [() => symlink(elsewhere, sockets), openToAll]) {
    await change();
    expect(await socketsFolder(folder.path)).toBe("");
    await removeSockets(folder.path);
    expect(await readdir(sockets)).toEqual(["socket-0"]);
    await rm(sockets, { recursive: true });
  }
  await mkdir(sockets, { mode: 0o700 });
  expect(await socketsFolder(folder.path)).toBe(sockets);
});

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

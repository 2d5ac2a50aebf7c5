import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import {
  type NetworkSockets,
  privateAddress,
  socketPath,
  startNetwork,
} from "../../../../../src/backend/vm/machines/private-network.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import { rejectionOf } from "../../../../support/failure-of.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

interface Given {
  /** The places whose sockets QEMU creates, one in each pause. */
  readonly creates: readonly number[];
  readonly status?: number;
  /** Called in each pause. */
  readonly onPause?: () => void;
}

/** Starts the network of two machines. Each pause takes a second of the clock and no time. */
async function start({ creates, status = 0, onPause }: Given, signal = neverAborted) {
  await using folder = await scratchFolder();
  const sockets: NetworkSockets = { folder: folder.path, count: 2 };
  const calls: string[] = [];
  const system = async (words: readonly string[]) => {
    calls.push(words.join(" "));
    return Promise.resolve({ status, stdout: "", stderr: "qemu-system-x86_64: cannot bind\n" });
  };
  const qemu = { systemName: "qemu-system-x86_64", system } as unknown as Qemu;
  const left = [...creates];
  const time = { ms: 0 };
  const sleep = async (): Promise<void> => {
    time.ms += 1_000;
    onPause?.();
    const place = left.shift();
    if (place !== undefined) await writeFile(socketPath(sockets, place), "");
  };
  const plan = {
    directory: folder.path,
    sockets,
    isSandboxed: true,
    clock: { now: () => time.ms, sleep },
  };
  const failure = await rejectionOf(startNetwork(qemu, plan, signal));
  return { failure, calls: calls.length, ms: time.ms };
}

test("the network is ready once the sockets of all machines are there", async () => {
  expect(await start({ creates: [1, 0] })).toEqual({ failure: undefined, calls: 1, ms: 2_000 });
});

test.each([[[]], [[0]], [[1]]])(
  "a QEMU that only creates the sockets %j is an error that says where to put them",
  async (creates) => {
    expect((await start({ creates })).failure).toMatchObject({
      id: "engine-failed",
      message: "QEMU does not create the sockets of the machines' private network.",
      hint: "Set TMPDIR to a folder on a local disk, with a short path.",
    });
  },
);

test("a QEMU that fails is an error with its message", async () => {
  expect((await start({ creates: [], status: 1 })).failure).toMatchObject({
    id: "engine-failed",
    message: "qemu-system-x86_64 for the private network failed: cannot bind.",
  });
});

test("after an interrupt, nothing is started", async () => {
  const reason = new Error("interrupted");
  expect(await start({ creates: [] }, AbortSignal.abort(reason))).toEqual({
    failure: reason,
    calls: 0,
    ms: 0,
  });
});

test("an interrupt ends the wait for the sockets, and is not reported as QEMU's fault", async () => {
  const interrupted = new AbortController();
  const reason = new Error("interrupted");
  const onPause = (): void => interrupted.abort(reason);
  const { failure } = await start({ creates: [], onPause }, interrupted.signal);
  expect(failure).toBe(reason);
});

test.each([
  [0, "10.93.0.2"],
  [253, "10.93.0.255"],
  [254, "10.93.1.0"],
])("the node at the place %d has the address %s", (place, address) => {
  expect(privateAddress(place)).toBe(address);
});

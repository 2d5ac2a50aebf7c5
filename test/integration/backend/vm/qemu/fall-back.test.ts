/** When an accelerator is blamed for machines that don't run, with real processes and scripted monitors in place of QEMU. */

import { mkdir, writeFile } from "node:fs/promises";
import { expect, test } from "bun:test";
import type { NodeFacts } from "../../../../../src/backend/vm/cluster-facts.ts";
import { machineFiles } from "../../../../../src/backend/vm/machines/machine-process.ts";
import type { Accelerator } from "../../../../../src/backend/vm/options.ts";
import { readBrokenAccelerator } from "../../../../../src/backend/vm/qemu/broken-accelerator.ts";
import { findBrokenAccelerator } from "../../../../../src/backend/vm/qemu/fall-back.ts";
import { startQemuProcess } from "../../../../support/qemu-process.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { startMonitor } from "../scripted-monitor.ts";

const node = { role: "master", index: 0 } as NodeFacts;

interface Given {
  readonly accelerator: Accelerator;
  /** The run state of its QEMU; absent: it has crashed. */
  readonly state?: string;
  readonly said?: string;
}

/** Looks for a broken accelerator below a machine, and reads which one is remembered. */
async function find({ accelerator, state, said = "" }: Given) {
  await using folder = await scratchFolder();
  const files = machineFiles(folder.path, node);
  await mkdir(files.folder, { recursive: true });
  await using stack = new AsyncDisposableStack();
  const child = stack.use(await startQemuProcess(files.pid));
  await writeFile(files.pid, `${state === undefined ? 4_194_305 : child.pid}\n`);
  await writeFile(files.started, "");
  await writeFile(files.qemuLog, said);
  if (state !== undefined)
    stack.use(await startMonitor(files.folder, async () => Promise.resolve({ status: state })));
  const environment = { XDG_CACHE_HOME: folder.path };
  const facts = { nodes: [node] } as unknown as Parameters<
    typeof findBrokenAccelerator
  >[0]["facts"];
  const found = await findBrokenAccelerator(
    { directory: folder.path, facts, accelerator },
    { environment },
  );
  expect(await readBrokenAccelerator(environment)).toEqual(found);
  return found?.reason;
}

test.each<[string, Given, string | undefined]>([
  [
    "crashed with a message",
    { accelerator: "kvm", said: "KVM internal error" },
    "KVM internal error",
  ],
  [
    "stopped with an internal error",
    { accelerator: "kvm", state: "internal-error" },
    "internal-error",
  ],
  ["was killed without a word", { accelerator: "kvm" }, undefined],
  ["runs", { accelerator: "kvm", state: "running" }, undefined],
  ["stopped because of its disk", { accelerator: "kvm", state: "io-error" }, undefined],
  ["stopped because of its own kernel", { accelerator: "kvm", state: "guest-panicked" }, undefined],
  ["crashed, but was translated", { accelerator: "tcg", said: "an assertion failed" }, undefined],
])(
  "below a machine that %s, the accelerator is broken for the reason: %#",
  async (_, given, reason) => {
    expect(await find(given)).toBe(reason);
  },
);

import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import {
  machineFiles,
  machinesFolder,
} from "../../../../../src/backend/vm/machines/machine-process.ts";
import type { Qemu } from "../../../../../src/backend/vm/qemu/qemu.ts";
import {
  type RestorePlan,
  restoreMachines,
} from "../../../../../src/backend/vm/snapshots/restore-machines.ts";
import { savedFiles } from "../../../../../src/backend/vm/snapshots/snapshot-files.ts";
import { systemClock } from "../../../../../src/system/runtime.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

test("if a disk can't be copied, nothing is stopped and no copy is left", async () => {
  await using scratch = await scratchFolder();
  const [directory, folder] = [join(scratch.path, "cluster"), join(scratch.path, "snapshot")];
  const nodes = [0, 1, 2].map((index) => ({ role: "agent", index }) as const);
  for (const node of nodes) {
    await mkdir(machineFiles(directory, node).folder, { recursive: true });
    await writeFile(machineFiles(directory, node).disk, "now");
    await mkdir(join(folder, `agent_${node.index}`), { recursive: true });
  }
  for (const node of nodes.slice(0, 2))
    await writeFile(join(folder, savedFiles(node).disk), "then");
  const plan = {
    cluster: { directory, facts: { nodes } },
    folder,
    saved: { files: {} },
    clock: systemClock,
  };
  // A QEMU that is used would throw another error.
  const restoring = restoreMachines({} as Qemu, plan as unknown as RestorePlan, neverAborted);
  expect(await failureOf(restoring)).toMatchObject({ code: "ENOENT" });
  const left = await readdir(machinesFolder(directory), { recursive: true });
  expect(left.filter((name) => name.endsWith("restored"))).toEqual([]);
});

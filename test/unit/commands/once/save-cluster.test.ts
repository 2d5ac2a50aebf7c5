import { expect, test } from "bun:test";
import { join } from "node:path";
import type { Backend } from "../../../../src/backend/contract.ts";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import type { Context } from "../../../../src/cli/command.ts";
import { saveFailedCluster } from "../../../../src/commands/once/save-cluster.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test.each([
  ["file", [], undefined, "create --from PATH"],
  ["my $file", [], "podman", "create --from 'PATH' --engine podman"],
  ["file", ["age1"], "podman", "create --from DECRYPTED_FILE --engine podman"],
])(
  "a cluster that was saved as %p for %j is brought back on its own engine, %p",
  async (name, recipients, engine, line) => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "new", name);
    const told: string[] = [];
    const note = (text: string): void => void told.push(text);
    const context = {
      programName: "cluster-container",
      clock: systemClock,
      progress: { ...silentProgress, note, warn: note },
      environment: {},
      signal: neverAborted,
    } as unknown as Context;
    const save = async (): Promise<void> => {};
    const snapshots = { create: save, save };
    const backend = {
      find: async () => exampleCluster([], "oss"),
      local: { snapshots },
    } as unknown as Backend<unknown>;
    const input = {
      clusterId: "example",
      saveOnFailure: path,
      recipients,
      withoutBase: false,
      engine,
    };
    const command = await saveFailedCluster(containerKind, backend, input, context);
    expect(command).toBe(`cluster-container ${line.replace("PATH", () => path)}`);
    expect(told.at(-1)).toBe(`Bring the cluster back as it was: ${command}`);
  },
);

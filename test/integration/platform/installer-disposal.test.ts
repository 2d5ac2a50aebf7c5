import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInstaller } from "../../../src/platform/installer.ts";
import { silentProgress, systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleArtifact, examplePlan } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

const never = new AbortController().signal;

test.skipIf(machinesLack !== undefined)(
  "disposing of an installer ends its work first, so that nothing continues while the machines are removed",
  async () => {
    await using folder = await scratchFolder();
    await using machines = await startMachines({ roles: ["master"] });
    const [machine] = machines.machines;
    const artifact = join(folder.path, "artifact.sh");
    await writeFile(artifact, exampleArtifact("oss"));
    const plan = examplePlan(artifact, { workspaceFolder: folder.path });
    const runtime = { connections: machines.connections, clock: systemClock, progress: silentProgress };
    const installer = createInstaller(plan, runtime, never);
    const ended: string[] = [];
    const preparing = failureOf(installer.prepare(machine!.node)).then(({ message }) => ended.push(message));
    await until("the first command runs", () => machine!.commands.length > 0);
    await installer[Symbol.asyncDispose]();
    // Lets ended work settle.
    await new Promise((resolve) => setImmediate(resolve));
    expect(ended).toEqual(["The installer was stopped"]);
    await preparing;
  },
  20_000,
);

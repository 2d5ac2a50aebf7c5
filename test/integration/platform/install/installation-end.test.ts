import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { installOn } from "../../../../src/cluster/create.ts";
import { launchedMachines } from "../../../../src/library/install-from-path.ts";
import { openInstallation } from "../../../../src/platform/install/steps.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  exampleArtifact,
  exampleCluster,
  examplePlan,
  exampleTraits,
} from "../../../support/install-example.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

test.skipIf(machinesLack !== undefined)(
  "an aborted installation ends only when its steps have, so that nothing continues while the machines are removed",
  async () => {
    await using folder = await scratchFolder();
    await using machines = await startMachines({ roles: ["master"] });
    const [machine] = machines.machines;
    const artifact = join(folder.path, "artifact.sh");
    await writeFile(artifact, exampleArtifact("oss"));
    const plan = examplePlan(artifact, { workspaceFolder: folder.path });
    const { progress, steps } = recordingProgress();
    const begun: string[] = [];
    const start: typeof progress.start = (title, subject) => {
      begun.push(`${title} ${subject}: failed`);
      return progress.start(title, subject);
    };
    const runtime = {
      connections: machines.connections,
      clock: systemClock,
      progress: { ...progress, start },
    };
    const installation = openInstallation(runtime, plan, exampleTraits);
    const stop = new AbortController();
    const work = installOn(
      { ...runtime, signal: stop.signal },
      launchedMachines(exampleCluster(machines.nodes, "oss")),
      installation,
    );
    const ended = failureOf(work).then((failure) => ({
      failure: failure as Error,
      steps: [...steps],
    }));
    await until("the first command runs", () => machine!.commands.length > 0);
    const reason = new Error("interrupted");
    stop.abort(reason);
    expect((await ended).failure).toBe(reason);
    expect(begun).toContain("Prepare master_0: failed");
    expect((await ended).steps.toSorted()).toEqual(begun.toSorted());
  },
);

/** A machine whose memory was saved continues with the time at which it was saved. */
import type { Backend } from "../../../src/backend/contract.ts";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { restoreSnapshot } from "../../../src/cluster/snapshots.ts";
import { failureOf, rejectionOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { scriptedClock } from "../../support/scripted-clock.ts";
import { signal } from "../../support/ssh-options.ts";

const sudo = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nUSER=root exec "$@"\n';

/** Restores a snapshot of a master and an agent. `end` is how their `date` ends. Returns how the restore ended, and who called both with which arguments. */
async function restore(holdsMemory: boolean, end: string) {
  await using scratch = await scratchFolder();
  const date = `#!/bin/sh\necho "$USER $*" >>"$MACHINE/run/date"\n${end}\n`;
  await using machines = await startMachines({ roles: ["master", "agent"], programs: { date, sudo } });
  for (const machine of machines.machines) await machine.write("run/date", "");
  const directory = join(scratch.path, "cluster");
  await machines.openTo(directory);
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const snapshots = { restore: async () => {}, holdsMemory };
  const backend = { name: "vm", find: async () => cluster, snapshots } as unknown as Backend<unknown>;
  const { progress, steps } = recordingProgress();
  const clock = scriptedClock(Date.UTC(2026, 0, 2, 3, 4, 5, 678));
  const name = { clusterId: cluster.id, name: "installed" };
  const ended = await rejectionOf(restoreSnapshot(backend, name, { environment: {}, clock, progress }, signal));
  const given = await Promise.all(machines.machines.map((machine) => machine.read("run/date")));
  return { ended, steps, given };
}

describe.skipIf(machinesLack !== undefined)("after a restore", () => {
  test("the clocks of machines whose memory was saved are set", async () => {
    const { ended, steps, given } = await restore(true, "exit 0");
    expect(ended).toBeUndefined();
    expect(steps).toEqual(["Log in to the nodes: done"]);
    expect(given).toEqual(["root --set=@1767323045.678\n", "root --set=@1767323045.678\n"]);
  });

  test("the clocks of other machines are left alone", async () => {
    const { ended, steps, given } = await restore(false, "exit 1");
    expect(ended).toBeUndefined();
    expect({ steps, given }).toEqual({ steps: ["Log in to the nodes: done"], given: ["", ""] });
  });

  test("a clock that can't be set is an error that says why", async () => {
    const said = "yes ::error::forged | head -n 1000; echo '::error::forged'; echo 'date: not permitted.'";
    const failure = await failureOf(restore(true, `(${said}) >&2; exit 1`).then(fail));
    expect(failure.id).toBe("remote-command-failed");
    expect(failure.message).toMatch(/^The clock of (master|agent)_0 cannot be set: date: not permitted\.$/);
  });
});

const fail = async ({ ended }: { readonly ended: unknown }): Promise<never> => Promise.reject(ended);

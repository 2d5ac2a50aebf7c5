/** A machine whose memory was saved continues with the time at which it was saved. */
import type { Backend } from "../../../src/backend/contract.ts";
import type { Power } from "../../../src/backend/power.ts";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { ClusterError } from "../../../src/errors.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { restoreSnapshot } from "../../../src/cluster/snapshots.ts";
import { failureOf, rejectionOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { ownClock } from "../../support/install-machine-programs.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { signal } from "../../support/ssh-options.ts";

const sudo = '#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done\nshift\nUSER=root exec "$@"\n';

const hourNs = 3_600_000_000_000;

/**
 * Restores a snapshot of a master and an agent whose clocks are an hour behind. Returns how the restore ended, by how many nanoseconds each is ahead
 * then, and who has set it.
 */
async function restore(
  holdsMemory: boolean,
  programs: Readonly<Record<string, string>> = {},
  power?: Pick<Power, "assertBoots">,
) {
  await using scratch = await scratchFolder();
  await using machines = await startMachines({
    roles: ["master", "agent"],
    programs: { ...ownClock, ...programs, sudo },
  });
  for (const machine of machines.machines) {
    await machine.write("run/clock", String(-hourNs));
    await machine.write("run/date", "");
  }
  const directory = join(scratch.path, "cluster");
  await machines.openTo(directory);
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const snapshots = { restore: async () => {}, holdsMemory };
  const backend = {
    name: "vm",
    find: async () => cluster,
    local: { snapshots, power },
  } as unknown as Backend<unknown>;
  // A node whose system has ended accepts no login.
  if (power !== undefined) await machines.machines[1]!.close();
  const { progress, steps } = recordingProgress();
  const name = { clusterId: cluster.id, name: "installed" };
  const ended = await rejectionOf(
    restoreSnapshot({ environment: {}, clock: systemClock, progress, signal }, backend, name),
  );
  const read = async (file: string): Promise<readonly string[]> =>
    Promise.all(machines.machines.map((machine) => machine.read(file)));
  const ahead = (await read("run/clock")).map(Number);
  return { ended, steps, ahead, given: await read("run/date") };
}

describe.skipIf(machinesLack !== undefined)("after a restore", () => {
  test("the clocks of machines whose memory was saved are set", async () => {
    const { ended, steps, ahead, given } = await restore(true);
    expect(ended).toBeUndefined();
    expect(steps).toEqual(["Log in to the nodes: done"]);
    // On a busy computer, starting `date` takes its time.
    for (const ns of ahead) expect(Math.abs(ns)).toBeLessThan(hourNs / 60);
    for (const line of given) expect(line).toMatch(/^root --set=@\d{10}\.\d{9}\n/);
  });

  test("the clocks of other machines are left alone", async () => {
    const { ended, steps, ahead, given } = await restore(false);
    expect(ended).toBeUndefined();
    expect({ steps, ahead, given }).toEqual({
      steps: ["Log in to the nodes: done"],
      ahead: [-hourNs, -hourNs],
      given: ["", ""],
    });
  });

  test("a node whose console shows why it does not come is named with that", async () => {
    const assertBoots: Power["assertBoots"] = async (_cluster, { role }) => {
      if (role === "agent") throw new ClusterError("machine-failed", "its kernel panicked.");
    };
    const { ended } = await restore(true, {}, { assertBoots });
    expect(ended).toMatchObject({ id: "machine-failed", message: "its kernel panicked." });
  });

  test("a clock that can't be set is an error that says so", async () => {
    const said =
      "yes ::error::forged | head -n 1000; echo '::error::forged'; echo 'date: not permitted.'";
    const date = ownClock["date"]!.replace(
      "case $1 in",
      `case $1 in --set=*) (${said}) >&2; exit 1 ;; esac\ncase $1 in`,
    );
    const failure = await failureOf(restore(true, { date }).then(fail));
    expect(failure.id).toBe("remote-command-failed");
    expect(failure.message).toMatch(
      /^The clock of (master|agent)_0 cannot be set: date does not set it\.$/,
    );
  });
});

const fail = async ({ ended }: { readonly ended: unknown }): Promise<never> =>
  Promise.reject(ended);

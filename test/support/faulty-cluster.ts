/** A cluster whose nodes get faults: machines whose systemd, nft and ping are small scripts. */
import { join } from "node:path";
import type { Backend } from "../../src/backend/contract.ts";
import { beginFault, endFaults, listFaults } from "../../src/cluster/faults/faults.ts";
import type { FaultRequest } from "../../src/platform/faults/fault-kinds.ts";
import { systemClock } from "../../src/system/runtime.ts";
import { exampleCluster } from "./install-example.ts";
import { startMachines } from "./install-machine.ts";
import { recordingProgress } from "./recording-progress.ts";
import { scratchFolder } from "./scratch-folder.ts";
import { signal } from "./ssh-options.ts";

const programs = {
  sudo: `#!/bin/sh
case "$*" in *e2e-start-fault*) while [ -e "$MACHINE/late" ]; do sleep 0.05; done ;; esac
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
`,
  systemctl: `#!/bin/sh
unit=$MACHINE/run/systemd/system/$2
line() { sed -n "s/^$1=//p" "$unit"; }
[ -e "$unit" ] || exit 0
heal=$(line ExecStopPost)
case $1 in
  start) sh -c "$(line ExecStartPre)" || { sh -c "$heal"; exit 1; }
    [ -e "$MACHINE/timed" ] || exit 0
    (while [ -e "$MACHINE/timed" ]; do sleep 0.05; done; sh -c "$heal") >/dev/null 2>&1 & ;;
  stop) sh -c "$heal" ;;
esac
`,
  nft: `#!/bin/sh
case $1 in
  -f) : >"$MACHINE/seen"; while [ -e "$MACHINE/hold" ]; do sleep 0.05; done; [ ! -e "$MACHINE/broken" ] || exit 1
    cat >"$MACHINE/rules"; [ -e "$MACHINE/vain" ] || : >"$MACHINE/cut" ;;
  delete) rm -f "$MACHINE/cut" "$MACHINE/rules" ;;
  list) [ -e "$MACHINE/rules" ] ;;
esac
`,
  logger: '#!/bin/sh\necho "$*" >>"$MACHINE/journal"\n',
  ping: '#!/bin/sh\n[ -e "$MACHINE/cut" ] || echo "rtt min/avg/max/mdev = 0.321/1.0/1.1/0.1 ms"\n',
};

export async function openFaultyCluster() {
  const stack = new AsyncDisposableStack();
  const scratch = stack.use(await scratchFolder());
  const machines = stack.use(
    await startMachines({ roles: ["master", "master", "agent"], programs }),
  );
  const directory = join(scratch.path, "cluster");
  await machines.openTo(directory);
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const backend = { name: "container", find: async () => cluster } as unknown as Backend<unknown>;
  const recorded = recordingProgress();
  const runtime = { environment: {}, clock: systemClock, progress: recorded.progress };
  const named = { clusterId: cluster.id };
  const list = async () => listFaults({ ...runtime, signal }, backend, cluster.id);
  const request: FaultRequest = {
    kind: "partition",
    between: ["agent_0"],
    and: ["masters"],
    durationMs: 60_000,
  };
  const begin = async (changes: Partial<FaultRequest> = {}, inner = signal) =>
    beginFault({ ...runtime, signal: inner }, backend, {
      ...named,
      request: { ...request, ...changes },
    });
  const end = async (nodes: readonly string[] = []) =>
    endFaults({ ...runtime, signal }, backend, { ...named, nodes });
  const cuts = async () =>
    Promise.all(
      machines.machines.map(async ({ folder }) => Bun.file(join(folder, "cut")).exists()),
    );
  return {
    directory,
    machines: machines.machines,
    backend,
    named,
    runtime,
    told: recorded.told,
    list,
    begin,
    end,
    cuts,
    stack,
  };
}

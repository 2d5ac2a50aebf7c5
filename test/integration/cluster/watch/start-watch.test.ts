/** Watching nodes whose journal is a file, over real SSH connections. */
import { appendFile, mkdir, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import { recordEvent, recordNodes } from "../../../../src/cluster/events/record-event.ts";
import {
  type Ignored,
  type Trouble,
  startWatch,
} from "../../../../src/cluster/watch/start-watch.ts";
import type { ClusterRecord, NodeState } from "../../../../src/model/cluster-record.ts";
import { LineProgress } from "../../../../src/library/runtime.ts";
import { readEvents } from "../../../../src/store/events.ts";
import { type Clock, systemClock } from "../../../../src/system/runtime.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

/** Follows the file `run/journal` from its end, or from the line that a cursor names. */
const programs = {
  journalctl: `#!/bin/sh
file=$MACHINE/run/journal
case " $* " in
  *" -n 0 "*) ;;
  *" export "*) echo "__CURSOR=$(wc -l <"$file")" ;;
  *) for word; do case $word in --after-cursor=*) from=\${word#*=} ;; esac; done
     exec tail -n "+$((\${from:-0} + 1))" -f "$file" ;;
esac
`,
  logger: `#!/bin/sh
echo "$(date +%Y-%m-%dT%H:%M:%S.000000+0000) host cluster-e2e[1]: $4" >>"$MACHINE/run/journal"
`,
};

/** Notes how long the node's rounds are, and makes them short; while there is a file \`run/silent\`, none ends. */
const sleep = `#!/bin/sh
echo "$1" >>"$MACHINE/run/pauses"
while [ -e "$MACHINE/run/silent" ]; do : >"$MACHINE/run/is-silent"; /bin/sleep 0.02; done
exec /bin/sleep 0.02
`;

interface Given {
  readonly ignored?: readonly Ignored[];
  readonly clock?: Clock;
  readonly programs?: Readonly<Record<string, string>>;
  /** Whether the first node's platform has a program `watch`, which is `meter`. */
  readonly hasMeter?: boolean;
  /** Whether the backend never answers the first question. */
  readonly isSlow?: boolean;
  /** Whether the backend has other machines now, as after a restore. */
  readonly hasOtherIds?: boolean;
}

async function openCluster({
  ignored = [],
  clock = systemClock,
  hasMeter,
  isSlow,
  hasOtherIds,
  ...given
}: Given = {}) {
  const scratch = await scratchFolder();
  const machines = await startMachines({
    roles: ["master", "agent"],
    programs: { ...programs, ...given.programs },
  });
  const directory = join(scratch.path, "state");
  await machines.openTo(directory);
  const notes: string[] = [];
  const progress = new LineProgress((line) => notes.push(line));
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const runtime = { environment: {}, clock, progress };
  const troubles: Trouble[] = [];
  const states = new Map<number, NodeState>();
  const setState = (index: number, state: NodeState): void => void states.set(index, state);
  const stop = async (index: number): Promise<void> => {
    await machines.machines[index]!.close();
    setState(index, "stopped");
  };
  const asked = { times: 0 };
  const find = async (signal = neverAborted): Promise<ClusterRecord> => {
    asked.times += 1;
    if (isSlow === true && asked.times === 1) await systemClock.sleep(2 ** 30, signal);
    return present();
  };
  const present = (): ClusterRecord => ({
    ...cluster,
    nodes: cluster.nodes.map((node, index) => ({
      ...node,
      id: hasOtherIds === true ? `${node.id}-again` : node.id,
      state: states.get(index) ?? node.state,
    })),
  });
  const journal = (index: number): string => join(machines.machines[index]!.folder, "run/journal");
  for (const index of [0, 1]) {
    await mkdir(dirname(journal(index)), { recursive: true });
    await appendFile(
      journal(index),
      lineOf("systemd[1]: old.service: Failed with result 'signal'."),
    );
  }
  const write = async (index: number, text: string): Promise<void> =>
    appendFile(journal(index), lineOf(text));
  const untilTold = async (text: string): Promise<void> => {
    while (!troubles.some((each) => each.text.includes(text))) await Bun.sleep(20);
  };
  if (hasMeter === true) {
    const platform = join(machines.machines[0]!.folder, "opt/cluster-platform");
    await machines.machines[0]!.write("opt/cluster-platform/environment", "");
    await mkdir(join(platform, "folder"));
    await symlink("../../../bin/meter", join(platform, "folder/watch"));
  }
  const watch = await startWatch(
    { ...runtime, signal: neverAborted },
    {
      cluster,
      ignored,
      find,
      onTrouble: (trouble) => void troubles.push(trouble),
    },
  );
  const dispose = async (): Promise<void> => {
    await watch[Symbol.asyncDispose]();
    await machines[Symbol.asyncDispose]();
    await scratch[Symbol.asyncDispose]();
  };
  return {
    watch,
    machines,
    directory,
    runtime,
    notes,
    find,
    write,
    untilTold,
    stop,
    setState,
    troubles,
    [Symbol.asyncDispose]: dispose,
  };
}

const lineOf = (text: string): string => `${new Date().toISOString()} host ${text}\n`;
const shown = (troubles: readonly Trouble[]): readonly string[] =>
  troubles.map(
    ({ node, kind, text }) => `${node} ${kind} ${text.replaceAll(/[\uFDD0\uFDD1]/g, "")}`,
  );

test.skipIf(machinesLack !== undefined)(
  `says at once what goes wrong on which node, once, and goes on past a lost connection (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster();
    const { watch, write, untilTold, machines, directory } = opened;
    await write(0, "systemd[1]: app.service: Failed with result 'exit-code'.");
    await write(0, "systemd[1]: app.service: Failed with result 'exit-code'.");
    await untilTold("app.service");
    await machines.machines[1]!.write("proc/1/stat", `1 (systemd) ${"0 ".repeat(19)}77 0`);
    machines.machines[1]!.cutConnections();
    await write(1, "kernel: Out of memory: Killed process 7 (java)");
    await untilTold("java");
    await write(1, "systemd[1]: last.service: Failed with result 'exit-code'.");
    expect(shown(await watch.end())).toEqual([
      "master_0 failed-unit systemd: app.service: Failed with result 'exit-code'.",
      "agent_0 reboot the node has booted",
      "agent_0 oom kernel: Out of memory: Killed process 7 (java)",
      "agent_0 failed-unit systemd: last.service: Failed with result 'exit-code'.",
    ]);
    const events = (await readEvents(directory)).filter(({ kind }) => kind === "noticed");
    expect(events).toHaveLength(4);
    expect(events[2]).toMatchObject({ node: "agent_0", what: "out of memory" });
  },
);

test.skipIf(machinesLack !== undefined)(
  `a node counts as watched when its counters are known, for what is killed right then (${machinesLack ?? "here"})`,
  async () => {
    const date =
      '#!/bin/sh\n/bin/sleep 1\necho looked >>"$MACHINE/run/looks"\nexec /bin/date "$@"\n';
    await using opened = await openCluster({ programs: { date } });
    for (const machine of opened.machines.machines)
      expect(await machine.read("run/looks")).toContain("looked");
  },
);

test.skipIf(machinesLack !== undefined)(
  `a platform's program that leaves processes goes on being watched (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster({
      programs: {
        meter:
          '#!/bin/sh\nsleep 1000 & echo $! >>"$MACHINE/run/left"\n[ ! -e "$MACHINE/run/still" ] || { printf "it stands still\\r\\n"; exit 3; }\n',
      },
      hasMeter: true,
    });
    const [machine] = opened.machines.machines;
    const left = async (): Promise<readonly string[]> =>
      (await machine!.read("run/left")).split("\n").slice(0, -1);
    await until("it has run twice", async () => (await left()).length > 1);
    await machine!.write("run/still", "");
    await opened.untilTold("it stands still");
    const troubles = shown(await opened.watch.end());
    // Only where the node could make a control group for the program have they ended.
    Bun.spawnSync(["kill", "-KILL", ...(await left())], { stderr: "ignore" });
    expect(troubles).toEqual(["master_0 watch ./watch exited with status 3: it stands still"]);
  },
);

test.skipIf(machinesLack !== undefined)(
  `a fault of ours explains its own effect on its own node, and an option what it names (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster({
      ignored: [{ kind: "failed-unit", pattern: "cron*exit" }],
    });
    const { watch, write, directory, runtime } = opened;
    const fault = { id: "0123abcd", fault: "process", text: "killing app", seconds: 600 };
    recordEvent(
      directory,
      { kind: "fault", ...fault, nodes: ["agent_0"], course: "begun" },
      runtime,
    );
    const failed = (unit: string): string =>
      `systemd[1]: ${unit}.service: Failed with result 'exit-code'.`;
    await write(1, failed("app"));
    await write(1, "kernel: Oops: 0002 [#1] SMP");
    await write(0, failed("cron"));
    await write(0, failed("app"));
    expect(shown(await watch.end()).toSorted()).toEqual([
      "agent_0 kernel-error kernel: Oops: 0002 [#1] SMP",
      "master_0 failed-unit systemd: app.service: Failed with result 'exit-code'.",
    ]);
  },
);

test.skipIf(machinesLack !== undefined)(
  `a node that is gone is named, and the end comes nevertheless (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster();
    await opened.machines.machines[1]!.close();
    expect(await opened.watch.end()).toEqual([]);
    expect(opened.notes.join("\n")).toContain("agent_0 was not watched until the end");
  },
);

test.skipIf(machinesLack !== undefined)(
  `a node that stops is noticed, unless a command of ours stopped it (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster();
    const { watch, untilTold, stop, find, directory, runtime } = opened;
    await stop(0);
    await untilTold("the node is stopped");
    const [, agent] = (await find()).nodes;
    recordNodes(directory, [{ ...agent!, state: "stopped" }], runtime);
    await stop(1);
    expect(shown(await watch.end())).toEqual(["master_0 reboot the node is stopped"]);
    expect(opened.notes.join("\n")).not.toContain("was not watched");
  },
);

test.skipIf(machinesLack !== undefined)(
  `a node is found again whose machine is another one (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster({ hasOtherIds: true });
    await opened.stop(1);
    await opened.untilTold("the node is stopped");
    expect(shown(await opened.watch.end())).toEqual(["agent_0 reboot the node is stopped"]);
  },
);

test.skipIf(machinesLack !== undefined)(
  `an ignored line hides no other of its kind (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster({ ignored: [{ kind: "oom", pattern: "java" }] });
    await opened.write(0, "kernel: Out of memory: Killed process 7 (java)");
    await opened.write(0, "kernel: Out of memory: Killed process 8 (etcd)");
    await opened.write(0, "kernel: Out of memory: Killed process 9 (java)");
    expect(shown(await opened.watch.end())).toEqual([
      "master_0 oom kernel: Out of memory: Killed process 8 (etcd)",
    ]);
  },
);

/** A clock that stands still, until somebody sleeps and a test lets the time pass. */
function steppedClock(nowMs: number) {
  const sleeping: { readonly endMs: number; readonly wake: () => void }[] = [];
  const state = { nowMs };
  const clock: Clock = {
    now: () => state.nowMs,
    sleep: async (ms, signal) => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      sleeping.push({ endMs: state.nowMs + ms, wake: resolve });
      await promise;
    },
  };
  const step = async (ms: number): Promise<void> => {
    await until("somebody sleeps", () => sleeping.length > 0);
    state.nowMs += ms;
    for (const each of sleeping.splice(0))
      if (each.endMs <= state.nowMs) each.wake();
      else sleeping.push(each);
  };
  return { clock, step };
}

test.skipIf(machinesLack !== undefined)(
  `a journal's line waits for no clock, and a node's own rounds take three seconds (${machinesLack ?? "here"})`,
  async () => {
    const { clock } = steppedClock(Date.now());
    await using opened = await openCluster({ clock, programs: { sleep } });
    const [machine] = opened.machines.machines;
    await opened.write(0, "systemd[1]: app.service: Failed with result 'exit-code'.");
    await opened.untilTold("app.service");
    const pauses = async (): Promise<readonly string[]> =>
      (await machine!.read("run/pauses")).split("\n").slice(0, -1);
    await until("the node has gone round", async () => (await pauses()).length > 9);
    expect(Math.max(...(await pauses()).map(Number))).toBe(3);
  },
);

test.skipIf(machinesLack !== undefined)(
  `a node that stops without a word is known within five seconds, whatever others do (${machinesLack ?? "here"})`,
  async () => {
    const startMs = Date.now();
    const { clock, step } = steppedClock(startMs);
    await using opened = await openCluster({ clock, programs: { sleep } });
    const [master, agent] = opened.machines.machines;
    const silence = async (index: 0 | 1): Promise<number> => {
      const machine = [master, agent][index]!;
      await machine.write("run/silent", "");
      await until("it is silent", async () => Bun.file(`${machine.folder}/run/is-silent`).exists());
      opened.setState(index, "stopped");
      return clock.now();
    };
    const silentMs = async (index: 0 | 1): Promise<number> => {
      const sinceMs = await silence(index);
      const known = opened.troubles.length;
      while (opened.troubles.length === known) await step(100);
      return Date.parse(opened.troubles.at(-1)!.at) - sinceMs;
    };
    expect(await silentMs(1)).toBeLessThanOrEqual(5_000);
    for (let steps = 0; steps < 40; steps += 1) {
      const rounds = (await master!.read("run/pauses")).length;
      await step(500);
      await until("a round", async () => (await master!.read("run/pauses")).length > rounds + 3);
    }
    expect(await silentMs(0)).toBeLessThanOrEqual(5_000);
    expect(shown(opened.troubles)).toEqual([
      "agent_0 reboot the node is stopped",
      "master_0 reboot the node is stopped",
    ]);
    for (const each of [master, agent]) await rm(`${each!.folder}/run/silent`);
  },
);

test.skipIf(machinesLack !== undefined)(
  `a backend that never answers is asked again, and a node that is silent until the end is named (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster({ programs: { sleep }, isSlow: true });
    const [master, agent] = opened.machines.machines;
    for (const machine of [master!, agent!]) {
      await machine.write("run/silent", "");
      await until("it is silent", async () => Bun.file(`${machine.folder}/run/is-silent`).exists());
    }
    opened.setState(1, "stopped");
    await opened.untilTold("the node is stopped");
    expect(shown(opened.troubles)).toEqual(["agent_0 reboot the node is stopped"]);
    await master!.write("bin/logger", "#!/bin/sh\n");
    await opened.watch.end();
    expect(opened.notes.join("\n")).toContain("master_0 was not watched until the end");
    for (const each of [master, agent]) await rm(`${each!.folder}/run/silent`);
  },
);

test.skipIf(machinesLack !== undefined)(
  `notices what counts behind any number of lines that don't (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster({
      ignored: [{ kind: "failed-unit", pattern: "noise" }],
    });
    const { watch, write } = opened;
    const lines = Array.from({ length: 600 }, () =>
      lineOf("systemd[1]: noise.service: Failed with result 'exit-code'."),
    );
    await write(0, `systemd[1]: noise.service: Failed.\n${lines.join("")}`);
    await write(0, "systemd[1]: app.service: Failed with result 'exit-code'.");
    expect(shown(await watch.end())).toEqual([
      "master_0 failed-unit systemd: app.service: Failed with result 'exit-code'.",
    ]);
  },
);

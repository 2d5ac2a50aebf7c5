/** Watching nodes whose journal is a file, over real SSH connections. */
import { appendFile, mkdir } from "node:fs/promises";
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
import { systemClock } from "../../../../src/system/runtime.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

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

async function openCluster(ignored: readonly Ignored[] = []) {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles: ["master", "agent"], programs });
  const directory = join(scratch.path, "state");
  await machines.openTo(directory);
  const notes: string[] = [];
  const progress = new LineProgress((line) => notes.push(line));
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const runtime = { environment: {}, clock: systemClock, progress };
  const troubles: Trouble[] = [];
  const states = new Map<number, NodeState>();
  const stop = async (index: number): Promise<void> => {
    await machines.machines[index]!.close();
    states.set(index, "stopped");
  };
  const find = async (): Promise<ClusterRecord> => ({
    ...cluster,
    nodes: cluster.nodes.map((node, index) => ({
      ...node,
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
  const until = async (text: string): Promise<void> => {
    while (!troubles.some((each) => each.text.includes(text))) await Bun.sleep(20);
  };
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
    until,
    stop,
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
    const { watch, write, until, machines, directory } = opened;
    await write(0, "systemd[1]: app.service: Failed with result 'exit-code'.");
    await write(0, "systemd[1]: app.service: Failed with result 'exit-code'.");
    await until("app.service");
    await machines.machines[1]!.write("proc/1/stat", `1 (systemd) ${"0 ".repeat(19)}77 0`);
    machines.machines[1]!.cutConnections();
    await write(1, "kernel: Out of memory: Killed process 7 (java)");
    await until("java");
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
  `a fault of ours explains its own effect on its own node, and an option what it names (${machinesLack ?? "here"})`,
  async () => {
    await using opened = await openCluster([{ kind: "failed-unit", pattern: "cron*exit" }]);
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
    const { watch, until, stop, find, directory, runtime } = opened;
    await stop(0);
    await until("the node is stopped");
    const [, agent] = (await find()).nodes;
    recordNodes(directory, [{ ...agent!, state: "stopped" }], runtime);
    await stop(1);
    expect(shown(await watch.end())).toEqual(["master_0 reboot the node is stopped"]);
    expect(opened.notes.join("\n")).not.toContain("was not watched");
  },
);

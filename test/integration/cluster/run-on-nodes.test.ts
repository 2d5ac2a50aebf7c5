/** A command on many nodes at once, over logins and over kept ones. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { type NodesRun, runOnNodes } from "../../../src/cluster/run-on-nodes.ts";
import { nodeReference } from "../../../src/model/cluster-record.ts";
import { silentProgress, systemClock } from "../../../src/system/runtime.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

setDefaultTimeout(60_000);

async function openNodes() {
  const [scratch, machines] = await Promise.all([
    scratchFolder(),
    startMachines({ roles: ["master", "agent", "agent"] }),
  ]);
  const directory = join(scratch.path, "state");
  await machines.openTo(directory);
  const environment = { PATH: process.env["PATH"] ?? "", HOME: scratch.path };
  const cluster = { ...exampleCluster(machines.nodes, "oss"), directory };
  const run = async (
    words: readonly string[],
    more: Partial<Omit<NodesRun, "onLine">> & { onLine?: NodesRun["onLine"] | undefined } = {},
    stop = new AbortController(),
  ) => {
    const lines: string[] = [];
    const request = {
      nodes: machines.nodes,
      words,
      login: { name: undefined, password: undefined },
      variables: {},
      hasTestEnvironment: false,
      missingFolderHint: "",
      checkout: undefined,
      fetches: [],
      onLine: ((node, stream, line) =>
        void lines.push(`${nodeReference(node)} ${stream} ${line}`)) as NodesRun["onLine"],
      ...more,
    };
    const runtime = { environment, clock: systemClock, progress: silentProgress, onConnecting: () => {} };
    const outcomes = await runOnNodes(cluster, request, runtime, stop.signal);
    return { lines: lines.toSorted(), statuses: outcomes.map(({ status }) => status), outcomes };
  };
  return {
    machines: machines.machines,
    cluster,
    folder: scratch.path,
    run,
    [Symbol.asyncDispose]: async () => {
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const addressAndStatus =
  'echo "at $(cat $MACHINE/address)"; echo "$A" >&2; case $PWD in *agent_1*) exit 3 ;; esac; printf end';

describe.skipIf(machinesLack !== undefined)(`a command on many nodes (${machinesLack ?? "here"})`, () => {
  test("runs on all, with its variables, and keeps each node's status", async () => {
    await using nodes = await openNodes();
    const variables = { A: "it's B" };
    const expected = nodes.machines.flatMap(({ node }) => {
      const name = nodeReference(node);
      return [`${name} stderr it's B`, `${name} stdout at ${node.ssh.host}`, `${name} stdout end`];
    });
    const first = await nodes.run(["cd $MACHINE; " + addressAndStatus], { variables });
    expect(first.statuses).toEqual([0, 0, 3]);
    expect(first.lines).toEqual(expected.filter((line) => line !== "agent_1 stdout end").toSorted());
  });

  test("a node that cannot be reached doesn't stop the others", async () => {
    await using nodes = await openNodes();
    await nodes.machines[1]!.close();
    const { statuses, outcomes } = await nodes.run(["true"]);
    expect(statuses).toEqual([0, 255, 0]);
    expect(outcomes[1]?.error?.id).toBe("connection-failed");
  });

  test("an interrupt ends the command on every node", async () => {
    await using nodes = await openNodes();
    const stop = new AbortController();
    const files = nodes.machines.map(({ folder }) => join(folder, "pid"));
    const running = nodes.run(["echo $$ >$MACHINE/new; mv $MACHINE/new $MACHINE/pid; sleep 300"], {}, stop);
    await until("the command runs", async () => files.every((file) => existsSync(file)));
    const pids = await Promise.all(files.map(async (file) => Number(await readFile(file, "utf8"))));
    stop.abort(new Error("interrupted"));
    expect(await running.catch(String)).toContain("interrupted");
    await until("it has ended", async () => pids.every((pid) => !existsSync(`/proc/${pid}`)));
  });

  test("a slow reader gets everything, in whole lines", async () => {
    await using nodes = await openNodes();
    const seen = new Map<string, number>();
    const onLine: NodesRun["onLine"] = (node, _stream, line) => {
      seen.set(nodeReference(node), (seen.get(nodeReference(node)) ?? 0) + Number(line));
      return Number(line) % 10_000 === 0 ? Bun.sleep(5) : undefined;
    };
    await nodes.run(["seq 1 300000"], { onLine });
    expect([...seen.values()]).toEqual([45000150000, 45000150000, 45000150000]);
  });

  test("output without a reader is kept, and files go into each node's folder", async () => {
    await using nodes = await openNodes();
    const local = join(nodes.folder, "here", "report.xml");
    const fetches = [{ remote: "made", local }];
    const { outcomes } = await nodes.run(["echo out | tee made; echo err >&2"], { onLine: undefined, fetches });
    expect(outcomes.map(({ stdout, stderr }) => stdout + stderr)).toEqual(Array(3).fill("out\nerr\n"));
    for (const { node } of nodes.machines)
      expect(existsSync(join(nodes.folder, "here", nodeReference(node), "report.xml"))).toBe(true);
  });
});

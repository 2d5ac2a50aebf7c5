/** A command on many nodes at once. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { type NodesRun, runOnNodes } from "../../../src/cluster/run-on-nodes.ts";
import { nodeReference } from "../../../src/model/cluster-record.ts";
import { hasMasterConnection } from "../../../src/ssh/session/master-connection.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

async function openNodes() {
  const [scratch, machines] = await Promise.all([
    scratchFolder(),
    startMachines({ roles: ["master", "agent", "agent"] }),
  ]);
  // Longer than the path of a socket may be.
  const directory = join(scratch.path, "long".repeat(30));
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
    const runtime = {
      environment,
      clock: systemClock,
      progress: silentProgress,
      onConnecting: () => {},
    };
    const outcomes = await runOnNodes({ ...runtime, signal: stop.signal }, cluster, request);
    return { lines: lines.toSorted(), statuses: outcomes.map(({ status }) => status), outcomes };
  };
  return {
    machines: machines.machines,
    cluster,
    folder: scratch.path,
    run,
    logins: () => machines.machines.map((machine) => machine.logins()),
    [Symbol.asyncDispose]: async () => {
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const addressAndStatus =
  'echo "at $(cat $MACHINE/address)"; echo "$A" >&2; case $PWD in *agent_1*) exit 3 ;; esac; printf end';

describe.skipIf(machinesLack !== undefined)(
  `a command on many nodes (${machinesLack ?? "here"})`,
  () => {
    test("runs on all, with its variables, and keeps each node's status", async () => {
      await using nodes = await openNodes();
      const variables = { A: "it's B" };
      const expected = nodes.machines.flatMap(({ node }) => {
        const name = nodeReference(node);
        return [
          `${name} stderr it's B`,
          `${name} stdout at ${node.ssh.host}`,
          `${name} stdout end`,
        ];
      });
      const first = await nodes.run(["cd $MACHINE; " + addressAndStatus], { variables });
      expect(first.statuses).toEqual([0, 0, 3]);
      expect(first.lines).toEqual(
        expected.filter((line) => line !== "agent_1 stdout end").toSorted(),
      );
    });

    test("each command logs in to each node, and leaves no login behind", async () => {
      await using nodes = await openNodes();
      for (const count of [1, 2]) {
        const ran = await nodes.run(["echo out; exit 255"]);
        expect([ran.statuses, ran.outcomes.map(({ error }) => error)]).toEqual([
          [255, 255, 255],
          [undefined, undefined, undefined],
        ]);
        expect(nodes.logins()).toEqual([count, count, count]);
      }
      expect(await hasMasterConnection(nodes.cluster.directory, process.env)).toBe(false);
    });

    test("what a node printed before its connection was lost is shown, even half a line", async () => {
      await using nodes = await openNodes();
      const lines: string[] = [];
      const onLine: NodesRun["onLine"] = (_node, _stream, line) => void lines.push(line);
      const loop = "while [ -e $MACHINE/begun ]; do sleep 0.02; done";
      const prints = "printf 'collected 3\\n..F'; echo printed >&2";
      const running = nodes.run([`: >$MACHINE/begun; ${prints}; ${loop}`], { onLine });
      await until("each node has printed two lines", () => lines.length === 6);
      for (const machine of nodes.machines) machine.cutConnections();
      const { statuses, outcomes } = await running;
      await Promise.all(nodes.machines.map(async ({ folder }) => rm(join(folder, "begun"))));
      expect(statuses).toEqual([255, 255, 255]);
      expect(lines.slice(6)).toEqual(["..F", "..F", "..F"]);
      expect(outcomes.map(({ stdout }) => stdout)).toEqual(Array(3).fill("collected 3\n..F"));
    });

    test.each([
      [1, 700_000, 4],
      [16, 400_000, 2],
    ])(
      "of long output on %d nodes, the end is kept, so that all fit into the memory",
      async (count, last, megabytes) => {
        await using nodes = await openNodes();
        const [node] = nodes.cluster.nodes;
        const many = { nodes: Array(count).fill(node!), onLine: undefined };
        for (const { stdout } of (await nodes.run([`seq 1 ${last}`], many)).outcomes) {
          expect(stdout.length).toBe(megabytes * 1024 * 1024);
          expect(stdout).toEndWith(`\n${last}\n`);
        }
      },
    );

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
      const running = nodes.run(
        ["echo $$ >$MACHINE/new; mv $MACHINE/new $MACHINE/pid; sleep 300"],
        {},
        stop,
      );
      await until("the command runs", async () => files.every((file) => existsSync(file)));
      const pids = await Promise.all(
        files.map(async (file) => Number(await readFile(file, "utf8"))),
      );
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

    test("a command ends when it prints more than anybody reads, and its file is fetched", async () => {
      await using nodes = await openNodes();
      const lines: string[] = [];
      const onLine: NodesRun["onLine"] = (_node, _stream, line) => void lines.push(line);
      const isOutputClosed = (): boolean => lines.length > 0;
      const fetches = [{ remote: "made", local: join(nodes.folder, "here", "report.xml") }];
      const words = ["echo $$ | tee made; while echo on; do sleep 0.05; done"];
      const { statuses } = await nodes.run(words, { onLine, isOutputClosed, fetches });
      expect(statuses).toEqual([141, 141, 141]);
      const files = nodes.machines.map(({ node }) =>
        join(nodes.folder, "here", nodeReference(node), "report.xml"),
      );
      const pids = await Promise.all(
        files.map(async (file) => Number(await readFile(file, "utf8"))),
      );
      await until("the commands have ended", () =>
        pids.every((pid) => !existsSync(`/proc/${pid}`)),
      );
    });

    test("output without a reader is kept, and files go into each node's folder", async () => {
      await using nodes = await openNodes();
      const local = join(nodes.folder, "here", "report.xml");
      const fetches = [{ remote: "made", local }];
      const { outcomes } = await nodes.run(["echo out | tee made; echo err >&2"], {
        onLine: undefined,
        fetches,
      });
      expect(outcomes.map(({ stdout, stderr }) => stdout + stderr)).toEqual(
        Array(3).fill("out\nerr\n"),
      );
      for (const { node } of nodes.machines)
        expect(existsSync(join(nodes.folder, "here", nodeReference(node), "report.xml"))).toBe(
          true,
        );
    });
  },
);

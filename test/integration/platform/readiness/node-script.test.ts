/** node.sh by itself, with checks and files of all shapes. */
import { describe, expect, test } from "bun:test";
import { chmod, rename } from "node:fs/promises";
import { join } from "node:path";
import {
  type NodeReport,
  judgeNode,
  nodeScript,
  parseNodeReport,
} from "../../../../src/platform/readiness/node-question.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { until } from "../../../support/until.ts";

const manyCommas =
  '{"name": "meter", "version": "1.0",\n "ports": [1, 2, 3], "description": "a, b"}\n';
const groupsLack =
  await Bun.$`group=/sys/fs/cgroup$([ -e /sys/fs/cgroup/cgroup.controllers ] || echo /systemd)/e2e-$$
    mkdir $group && rmdir $group`
    .quiet()
    .nothrow()
    .then(({ exitCode }) =>
      exitCode === 0 ? undefined : "skipped: no control groups to write to",
    );
/** Checks have three seconds here. */
const script = nodeScript.replace(/^CHECK_SECONDS=.*$/m, "CHECK_SECONDS=3");

/** The processes that have this in their environment. */
async function withMark(mark: string): Promise<readonly string[]> {
  const found = await Bun.$`sh -c ${`grep -l ${mark} /proc/[0-9]*/environ`}`
    .quiet()
    .nothrow()
    .text();
  return found.split("\n").flatMap((path) => /^\/proc\/(\d+)\//.exec(path)?.[1] ?? []);
}

/** A node with this check. */
async function startNode(check: string, facts = manyCommas) {
  const machines = await startMachines({ roles: ["master"] });
  const machine = machines.machines[0]!;
  await machine.write("var/lib/cluster-e2e/layout", "folder\n");
  await machine.write("var/lib/cluster-e2e/install.status", "exit 0\n");
  await machine.write("opt/cluster-platform/platform.json", facts);
  await machine.write("opt/cluster-platform/web.json", '{"ssl_enabled": true, "web": null}\n');
  await machine.write("opt/cluster-platform/check-node", `#!/bin/bash\n${check}\n`);
  await chmod(join(machine.folder, "opt/cluster-platform/check-node"), 0o755);
  const ask = async (words: readonly string[], text = script): Promise<NodeReport> => {
    const connection = await machines.connections.connect(machine.node, neverAborted);
    const { stdout } = await connection.run(
      {
        argv: ["sh", "-s", "--", "e2e-readiness", ...words],
        sudo: true,
        stdin: text,
        limitMs: 60_000,
      },
      neverAborted,
    );
    return parseNodeReport(stdout);
  };
  return { machine, ask, [Symbol.asyncDispose]: () => machines[Symbol.asyncDispose]() };
}

/** The answer of a node with this check that knows of no other. */
async function answerWith(
  check: string,
  facts = manyCommas,
  more: readonly string[] = [],
  text = script,
): Promise<NodeReport> {
  await using node = await startNode(check, facts);
  return await node.ask(["1", "-", "0", ...more], text);
}

describe.skipIf(machinesLack !== undefined)("the question to a node", () => {
  test.each([
    ["hangs", "sleep 300", ""],
    [
      "hangs after some output",
      "printf 'a, b\\nc=d, check.status=0\\n'; sleep 300",
      "a, b\nc=d, check.status=0",
    ],
    [
      "hangs and ignores what asks it to end",
      "trap '' TERM; echo still here; while :; do sleep 1; done",
      "still here",
    ],
  ])("is answered if the check %s", async (_what, check, output) => {
    for (const facts of [manyCommas, ""]) {
      const report = await answerWith(check, facts);
      expect(report).toMatchObject({ layout: "folder", status: "exit 0", checkStatus: 124 });
      expect(report.checkOutput).toStartWith(output);
      expect(report.facts).toBe(facts.replaceAll("\n", ""));
      expect(judgeNode(report)).toEqual({
        kind: "waiting",
        reason: `its check did not finish within 20 s${facts === "" ? "" : " (checkTimeout in platform.yaml)"}`,
      });
    }
  });

  test.each([
    ["a daemon that holds its output", "sleep 300 & echo started"],
    ["a daemon in another session", "setsid sleep 300 & echo started"],
    ["a daemon that nobody waits for", "(setsid sleep 300 &); echo started"],
  ])("is answered with the status of a check that leaves %s", async (_what, check) => {
    await using node = await startNode(`${check}; exit 3`);
    const report = await node.ask(["1", "-", "0"]);
    expect(report).toMatchObject({ checkStatus: 3, checkOutput: "started" });
  });

  test.skipIf(groupsLack !== undefined).each([
    ["a daemon", "sleep 300"],
    ["a daemon in another session", "setsid sleep 300"],
    ["a daemon that nobody waits for", "(setsid sleep 300 &)"],
    ["a daemon that ignores TERM", "setsid sh -c 'trap \"\" TERM; while :; do sleep 1; done'"],
  ])(
    `ends %s that a check has started which hangs (${groupsLack ?? "here"})`,
    async (_what, daemon) => {
      const mark = `LEFT=${crypto.randomUUID()}`;
      await using node = await startNode(
        `export ${mark}; ${daemon} & echo started; exec sleep 300`,
      );
      const report = await node.ask(["1", "-", "0"]);
      expect(report).toMatchObject({ checkStatus: 124, checkOutput: "started" });
      expect(await withMark(mark)).toEqual([]);
    },
  );

  test("leaves alone what a check has started that ends by itself, such as a mount", async () => {
    const mark = `LEFT=${crypto.randomUUID()}`;
    await using node = await startNode(`export ${mark}; setsid sleep 300 & echo started`);
    const report = await node.ask(["1", "-", "0"]);
    expect(report).toMatchObject({ checkStatus: 0, checkOutput: "started" });
    await until("it has started", async () => (await withMark(mark)).length === 1);
    const [left = ""] = await withMark(mark);
    expect(await Bun.file(`/proc/${left}/cgroup`).text()).not.toContain("cluster-e2e-");
    process.kill(Number(left), "SIGKILL");
  });

  test.each([
    ["without end", "echo begin; exec yes", 124, /^\n?(?:y\n)+y?$/],
    ["10 MB", "yes '0123456789' | head -c 10000000; echo; echo end; exit 1", 1, /end$/],
    ["10 MB in one line", "yes | tr -d '\\n' | head -c 10000000; exit 1", 1, /^y{15900,16000}$/],
    ["nothing", "exit 1", 1, /^$/],
    ["bytes that are no text", "head -c 40000 /dev/urandom; echo; echo end; exit 1", 1, /end$/],
  ])("is answered briefly if the check prints %s", async (_what, check, status, output) => {
    await using node = await startNode(check);
    const report = await node.ask(["1", "-", "0"], status === 124 ? script : nodeScript);
    expect(report.checkStatus).toBe(status);
    expect(report.checkOutput).toMatch(output);
    expect(report.checkOutput.length).toBeLessThan(17_000);
  });

  test("refuses a line without end before it fills the node's memory", async () => {
    const check = "exec tr '\\0' y </dev/zero";
    const report = await answerWith(check, manyCommas, [], `ulimit -v 200000\n${script}`);
    expect(report).toMatchObject({ checkStatus: 1, checkOutput: "One of its lines is too long." });
  });

  describe("has the limit of the platform", () => {
    const facts = (limit: string) =>
      `{"name":"meter","description":"\\"checkTimeout\\":\\"1s\\"","checkTimeout":"${limit}","logs":{}}\n`;

    test("if that is longer than usual", async () => {
      const report = await answerWith("sleep 2; echo done", facts("60s"), ["60"]);
      expect(report).toMatchObject({
        checkStatus: 0,
        checkOutput: "done",
        checkSeconds: undefined,
      });
    });

    test("if that is shorter than usual", async () => {
      const short = nodeScript.replace(/^CHECK_SECONDS=.*$/m, "CHECK_SECONDS=600");
      const report = await answerWith("sleep 300", facts("1s"), ["600"], short);
      expect(report).toMatchObject({ checkStatus: 124 });
    });

    test.each(["60s", "600s"])(
      "which it names if nobody waits that long for a check: %s",
      async (limit) => {
        const report = await answerWith('touch "$MACHINE/ran"; exit 1', facts(limit), ["20"]);
        expect(report).toMatchObject({
          checkStatus: undefined,
          checkSeconds: Number.parseInt(limit),
        });
        expect(report.facts).toContain("meter");
      },
    );

    test.each(["", "0s", "s", "-1s", "09s", "6000s", "1m", "2", "$(touch x)s"])(
      "unless it is none: %j",
      async (limit) => {
        const report = await answerWith("echo done", facts(limit), ["20"]);
        expect(report).toMatchObject({
          checkStatus: 0,
          checkOutput: "done",
          checkSeconds: undefined,
        });
      },
    );
  });

  test.each([
    ["check.status=124", 0],
    ["a, b\ncheck.status=124\nlayout=", 0],
    ["a, check.status=124", 7],
    ["{},{}\n\n=", 137],
    ["", 1],
  ])(
    "takes the output %j of a check that ends with %p for nothing else",
    async (output, status) => {
      const report = await answerWith(
        `printf '${output.replaceAll("\n", "\\n")}\\n'; exit ${status}`,
      );
      expect(report).toMatchObject({
        layout: "folder",
        checkStatus: status,
        checkOutput: output.trimEnd(),
      });
    },
  );

  describe("whose answer is known", () => {
    const waiting = ["1", "-", "0", "20"];
    const next = (seen: string | undefined, seconds: number): readonly string[] => [
      "1",
      seen ?? "",
      String(seconds),
      "20",
    ];
    const byFile = 'echo x >>"$MACHINE/calls"; cat "$MACHINE/says"; [ -e "$MACHINE/is-ready" ]';
    const calls = async ({ machine }: Awaited<ReturnType<typeof startNode>>): Promise<number> =>
      (await machine.read("calls")).length / 2;

    test("is answered when the node is ready", async () => {
      await using node = await startNode(byFile);
      await node.machine.write("says", "no leader\n");
      const first = await node.ask(waiting);
      const second = node.ask(next(first.seen, 600));
      await until("it has looked twice more", async () => (await calls(node)) > 3);
      await node.machine.write("is-ready", "");
      expect(await second).toMatchObject({ checkStatus: 0, checkOutput: "no leader" });
    });

    test("is answered when the check says something else", async () => {
      await using node = await startNode(byFile);
      await node.machine.write("says", "no leader\n");
      const first = await node.ask(waiting);
      const second = node.ask(next(first.seen, 600));
      await until("it has looked again", async () => (await calls(node)) > 2);
      // At no moment does it say nothing.
      await node.machine.write("says.new", "one of three members\n");
      await rename(join(node.machine.folder, "says.new"), join(node.machine.folder, "says"));
      expect(await second).toMatchObject({ checkStatus: 1, checkOutput: "one of three members" });
      expect((await second).seen).not.toBe(first.seen);
    });

    test("is answered with the same once the time is over", async () => {
      await using node = await startNode(byFile);
      await node.machine.write("says", "no leader\n");
      const first = await node.ask(waiting);
      expect(await node.ask(next(first.seen, 1))).toEqual(first);
      expect(first.seen).toMatch(/^\d+-\d+$/);
      expect(await calls(node)).toBeGreaterThan(1);
    });

    test("is answered at once if the node has another", async () => {
      await using node = await startNode(byFile);
      await node.machine.write("says", "no leader\n");
      await node.ask(next("1-75", 600));
      expect(await calls(node)).toBe(1);
    });

    test("leaves the check three times as much time as it took", async () => {
      await using node = await startNode('echo x >>"$MACHINE/calls"; sleep 0.5; exit 1');
      const first = await node.ask(waiting);
      await node.ask(next(first.seen, 5));
      // At 0, 2, 4 and 6 s, if nothing takes longer.
      expect(await calls(node)).toBeLessThanOrEqual(1 + 4);
    });

    test("is answered when the installer has ended, without a check before", async () => {
      await using node = await startNode('echo x >>"$MACHINE/calls"; exit 1');
      await node.machine.write("run/cluster-e2e-install.pid", `${process.pid}\n`);
      await node.machine.write("var/lib/cluster-e2e/install.status", "running\n");
      const first = await node.ask(waiting);
      expect(first).toMatchObject({ status: "running", checkStatus: undefined });
      const second = node.ask(next(first.seen, 600));
      await node.machine.write("var/lib/cluster-e2e/install.status", "exit 0\n");
      expect(await second).toMatchObject({ status: "exit 0", checkStatus: 1 });
      // It is not the unit's process.
      await node.machine.write("run/cluster-e2e-install.pid", "0\n");
      expect(await calls(node)).toBe(1);
    });

    test("is answered at once when the installation has failed", async () => {
      await using node = await startNode("exit 1");
      await node.machine.write("var/lib/cluster-e2e/install.status", "exit 3\n");
      const first = await node.ask(waiting);
      expect(await node.ask(next(first.seen, 600))).toEqual(first);
    });

    test("is answered at once if the check needs more time than the question has", async () => {
      const facts = '{"name":"meter","checkTimeout":"90s"}\n';
      await using node = await startNode("exit 1", facts);
      const first = await node.ask(waiting);
      expect(first).toMatchObject({ checkSeconds: 90 });
      expect(await node.ask(next(first.seen, 600))).toEqual(first);
    });
  });
});

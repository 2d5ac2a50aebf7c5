import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import type { ClusterRecord, NodeRecord, Role } from "../../../../src/model/cluster-record.ts";
import { outside } from "../../../../src/outside-text.ts";
import {
  type ReadinessReport,
  type ReadinessRequest,
  waitUntilReady,
} from "../../../../src/platform/readiness/readiness.ts";
import { type Clock, passedMs, systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import {
  type FolderMachine,
  type FolderMachines,
  machinesLack,
  startMachines,
} from "../../../support/install-machine.ts";
import { longEnough } from "../../../support/long-enough.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";
import { fastClock } from "../../../support/scripted-clock.ts";
import { type ExampleWeb, makeAuthority, startWeb } from "./readiness-web.ts";

const { signal } = new AbortController();
const roles: readonly Role[] = ["master", "agent", "public_agent"];
const check = "opt/cluster/bin/check";

interface Waiting {
  readonly waiting: readonly string[];
  readonly report: Promise<ReadinessReport>;
}

function wait(
  machines: FolderMachines,
  cluster: ClusterRecord,
  changes: Partial<ReadinessRequest>,
): Waiting {
  const waiting: string[] = [];
  const progress = { ...silentProgress, waiting: (text: string) => void waiting.push(text) };
  const request: ReadinessRequest = {
    describe: async () => cluster,
    cluster,
    connections: machines.connections,
    login: undefined,
    skipHttpChecks: true,
    // A busy computer takes minutes for what is usually done at once, and this clock is fast.
    deadlineMs: fastClock.now() + 200_000_000,
    clock: fastClock,
    progress,
    ...changes,
  };
  return { waiting, report: waitUntilReady(request, signal) };
}

/** A node after a successful installation. */
async function finish(machine: FolderMachine, checkScript: string): Promise<void> {
  await machine.write("var/lib/cluster-e2e/layout", "cluster\n");
  await machine.write("var/lib/cluster-e2e/install.status", "exit 0\n");
  await machine.write("opt/cluster/etc/bootstrap-config.json", '{\n  "ssl_enabled": false\n}\n');
  await machine.write(check, checkScript);
  await chmod(join(machine.folder, check), 0o755);
}

const passing = "#!/bin/sh\nexit 0\n";

async function finishAll(machines: FolderMachines): Promise<void> {
  await Promise.all(machines.machines.map(async (machine) => finish(machine, passing)));
}

const withWeb = (machines: FolderMachines, web: ExampleWeb): readonly NodeRecord[] =>
  machines.nodes.map((node) => (node.role === "master" ? web.of(node) : node));

/** A wait that is not over before these words are the last of it. */
async function waitsFor(
  words: RegExp,
  start: (limit: Pick<ReadinessRequest, "deadlineMs">) => { readonly report: Promise<unknown> },
): Promise<void> {
  await longEnough(20_000, async (limitMs) => {
    const error = await failureOf(start({ deadlineMs: fastClock.now() + limitMs }).report);
    expect(error.id).toBe("deadline-passed");
    return words.test(error.message);
  });
}

describe.skipIf(machinesLack !== undefined)("waiting for the platform", () => {
  // Shows R72.
  test("ends when the checks of all nodes have passed three times in a row", async () => {
    await using machines = await startMachines({ roles });
    const counting = '#!/bin/sh\necho x >>"$MACHINE/calls"\n';
    for (const machine of machines.machines) await finish(machine, counting);
    const { report } = wait(machines, exampleCluster(machines.nodes, "oss"), {});
    expect(await report).toMatchObject({ layout: "cluster", nodeCount: 3 });
    for (const machine of machines.machines) {
      expect(await machine.read("calls")).toBe("x\nx\nx\n");
      // The first question looks three times.
      expect(machine.commands.length).toBe(1);
    }
  });

  test("starts counting again when a check fails", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const [machine] = machines.machines;
    await finish(
      machine!,
      '#!/bin/sh\necho x >>"$MACHINE/calls"\n[ "$(wc -l <"$MACHINE/calls")" != 3 ] || { echo "disk slow"; exit 2; }\n',
    );
    const { report, waiting } = wait(machines, exampleCluster(machines.nodes, "oss"), {});
    await report;
    expect(await machine!.read("calls")).toBe("x\n".repeat(6));
    // The second question looks twice, and the last one once.
    expect(machine!.commands.length).toBe(3);
    // A busy computer may be slow to answer for the first time.
    expect(waiting.filter((text) => !text.includes("it has not answered yet"))).toEqual([
      `master_0: its check says: ${outside("disk slow")}`,
      "all checks passed; confirming",
    ]);
  });

  test("says at the deadline what every node lacks", async () => {
    await using machines = await startMachines({ roles });
    await finish(machines.machines[0]!, "#!/bin/sh\necho 'nginx is not running'\nexit 2\n");
    await machines.machines[1]!.write("var/lib/cluster-e2e/layout", "cluster\n");
    await machines.machines[1]!.write("var/lib/cluster-e2e/install.status", "running\n");
    await machines.machines[1]!.write("run/cluster-e2e-install.pid", `${process.pid}\n`);
    // The deadline passes as soon as all have answered.
    const limitMs = 1_000_000;
    const haveAnswered = (): boolean =>
      ["nginx is not running", "the installer is running", "not installed yet"].every((text) =>
        waiting.at(-1)?.includes(text),
      );
    const clock: Clock = {
      ...fastClock,
      sleep: async (ms, inner) =>
        ms > limitMs / 2
          ? until("all nodes have answered", haveAnswered)
          : fastClock.sleep(ms, inner),
    };
    const { report, waiting } = wait(machines, exampleCluster(machines.nodes, "oss"), {
      deadlineMs: fastClock.now() + limitMs,
      clock,
    });
    const error = await failureOf(report);
    // The test's own process was in place of the unit's. It must not be killed with the machine.
    await machines.machines[1]!.write("run/cluster-e2e-install.pid", "0\n");
    expect(error.id).toBe("deadline-passed");
    expect(error.exitCode).toBe(4);
    expect(error.message.replace(/after \d+ s/, "after N s")).toMatchInlineSnapshot(`
      "The cluster with 3 nodes was not ready after N s.
      Not ready yet:
        master_0: its check says: nginx is not running
        agent_0: the installer is running
        public_agent_0: not installed yet"
    `);
  });

  test("shows a node's last answer if the next one would come after the deadline", async () => {
    await longEnough(3_000, async (limitMs) => {
      await using machines = await startMachines({ roles: ["master"] });
      const script = `#!/bin/sh\n[ -e "$MACHINE/run/asked" ] && sleep 3600\n: >"$MACHINE/run/asked"\necho critical: no leader\nexit 1\n`;
      await finish(machines.machines[0]!, script);
      const changes = { clock: systemClock, deadlineMs: passedMs(systemClock) + limitMs };
      const error = await failureOf(
        wait(machines, exampleCluster(machines.nodes, "oss"), changes).report,
      );
      expect(error.id).toBe("deadline-passed");
      // Otherwise, the limit passed before the first answer.
      return error.message.includes("master_0: its check says: critical: no leader");
    });
  });

  test("shows what the masters lack if the next answers would come after the deadline", async () => {
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const script =
      '#!/bin/sh\necho x >>"$MACHINE/calls"\n[ "$(wc -l <"$MACHINE/calls")" -lt 4 ] || sleep 15\n';
    for (const machine of machines.machines) await finish(machine, script);
    await using web = startWeb({ "/nodes": () => ({ status: 200, body: [] }) }, undefined);
    const changes = {
      clock: systemClock,
      skipHttpChecks: false,
      deadlineMs: passedMs(systemClock) + 3_000,
    };
    const error = await failureOf(
      wait(machines, exampleCluster(withWeb(machines, web), "oss"), changes).report,
    );
    expect(error.id).toBe("deadline-passed");
    expect(error.message).toContain("master_0: 0 of 1 agent registered");
  });

  test("ends at once when an installer has failed, even if another node is slow to answer", async () => {
    await using machines = await startMachines({ roles });
    await finish(machines.machines[0]!, "#!/bin/sh\nexec sleep 15\n");
    await machines.machines[1]!.write("var/lib/cluster-e2e/layout", "cluster\n");
    await machines.machines[1]!.write("var/lib/cluster-e2e/install.status", "exit 3\n");
    await machines.machines[1]!.write(
      "var/lib/cluster-e2e/install.log",
      "fetching\ndisk is full\n",
    );
    const error = await failureOf(wait(machines, exampleCluster(machines.nodes, "oss"), {}).report);
    const log = ["fetching", "disk is full"];
    const failures = [{ node: "agent_0", reason: expect.stringContaining("status 3"), log }];
    expect(error).toMatchObject({ id: "install-failed", exitCode: 1, facts: { failures } });
  });

  test("detects a failure after a last line of 50 MB, and shows its end", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    await machines.machines[0]!.write("var/lib/cluster-e2e/layout", "cluster\n");
    await machines.machines[0]!.write("var/lib/cluster-e2e/install.status", "exit 3\n");
    await machines.machines[0]!.write(
      "var/lib/cluster-e2e/install.log",
      `${"x".repeat(50_000_000)}\ndisk is full\n`,
    );
    const failures = [{ node: "master_0", reason: expect.stringContaining("status 3") }];
    const first = await failureOf(wait(machines, exampleCluster(machines.nodes, "oss"), {}).report);
    expect(first).toMatchObject({ id: "install-failed", facts: { failures } });
    expect(first.message).toEndWith("\n    disk is full");
    await machines.machines[0]!.write("var/lib/cluster-e2e/install.log", "x".repeat(50_000_000));
    const again = await failureOf(wait(machines, exampleCluster(machines.nodes, "oss"), {}).report);
    expect(again).toMatchObject({ id: "install-failed", facts: { failures } });
    expect(again.message.length).toBeLessThan(10_000);
  });

  test("detects an interrupted installer, and reports the answer before it fails", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    await machines.machines[0]!.write("var/lib/cluster-e2e/layout", "cluster\n");
    await machines.machines[0]!.write("var/lib/cluster-e2e/install.status", "running\n");
    const kinds: string[] = [];
    const changes: Partial<ReadinessRequest> = {
      onAnswers: (answers) => void kinds.push(...answers.map(({ verdict }) => verdict.kind)),
    };
    const error = await failureOf(
      wait(machines, exampleCluster(machines.nodes, "oss"), changes).report,
    );
    expect(kinds).toEqual(["failed"]);
    const failures = [
      { node: "master_0", reason: expect.stringContaining("interrupted"), log: [] },
    ];
    expect(error).toMatchObject({ id: "install-failed", facts: { failures } });
  });

  test("waits for an installation that continues after a restart of its machine", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    await machines.machines[0]!.write("var/lib/cluster-e2e/layout", "cluster\n");
    await machines.machines[0]!.write("var/lib/cluster-e2e/install.status", "running\n");
    await machines.machines[0]!.write("run/cluster-e2e-install.enabled", "");
    const cluster = exampleCluster(machines.nodes, "oss");
    await waitsFor(/master_0: the installer is running/, (limit) => wait(machines, cluster, limit));
  });

  test("detects a failed unit of the dcos layout, and shows its journal", async () => {
    await using machines = await startMachines({ roles: ["agent"] });
    await machines.machines[0]!.write("var/lib/cluster-e2e/layout", "dcos\n");
    await machines.machines[0]!.write("var/lib/cluster-e2e/install.status", "exit 0\n");
    await machines.machines[0]!.write("run/dcos-setup.ended", "1\n");
    const error = await failureOf(wait(machines, exampleCluster(machines.nodes, "oss"), {}).report);
    const failures = [{ node: "agent_0", reason: expect.stringContaining("dcos-setup") }];
    expect(error).toMatchObject({ id: "install-failed", facts: { failures } });
    expect(error.message).toContain("journal of this computer");
  });

  test("waits for a node that doesn't answer, and ends when its machine has ended", async () => {
    await using machines = await startMachines({ roles: ["master", "agent"] });
    await finishAll(machines);
    const nodes = machines.nodes.map((node) =>
      node.role === "agent" ? { ...node, ssh: { ...node.ssh, port: 1 } } : node,
    );
    const ended = nodes.map((node) =>
      node.role === "agent"
        ? { ...node, state: "ended" as const, stateReason: "Server.SpotInstanceTermination" }
        : node,
    );
    const cluster = exampleCluster(nodes, "oss");
    const seen: { waiting: readonly string[] } = { waiting: [] };
    const { report, waiting } = wait(machines, cluster, {
      // Not before the silence is told, for which the other node must have answered.
      describe: async () => (seen.waiting.length > 0 ? exampleCluster(ended, "oss") : cluster),
    });
    seen.waiting = waiting;
    const error = await failureOf(report);
    const stopped = [
      { node: "agent_0", id: "i-agent-0", reason: "Server.SpotInstanceTermination" },
    ];
    expect(error).toMatchObject({ id: "machine-failed", facts: { nodes: stopped } });
    expect(waiting[0]).toStartWith("agent_0: it does not answer: ");
  });

  test("ends when a machine no longer exists", async () => {
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const cluster = exampleCluster(machines.nodes, "oss");
    const rest = exampleCluster(machines.nodes.slice(0, 1), "oss");
    const error = await failureOf(wait(machines, cluster, { describe: async () => rest }).report);
    const stopped = [{ node: "agent_0", id: "i-agent-0", reason: undefined }];
    expect(error).toMatchObject({ id: "machine-failed", facts: { nodes: stopped } });
  });
});

describe.skipIf(machinesLack !== undefined)("the masters' web servers", () => {
  test("must answer, and list all agents", async () => {
    await using machines = await startMachines({ roles });
    await finishAll(machines);
    const shown: { isLacking: () => boolean } = { isLacking: () => true };
    const nodes = (): { status: number; body: unknown } => ({
      status: 200,
      body: shown.isLacking() ? [{}] : [{}, {}],
    });
    await using web = startWeb({ "/nodes": nodes }, undefined);
    const { report, waiting } = wait(machines, exampleCluster(withWeb(machines, web), "oss"), {
      skipHttpChecks: false,
    });
    shown.isLacking = () => waiting.length === 0;
    await report;
    expect(waiting[0]).toBe("master_0: 1 of 2 agents registered");
    // One that lacks an agent at least, and three that pass.
    expect(web.requests.filter((line) => line === "GET /nodes").length).toBeGreaterThan(3);
  });

  test("are waited for while they answer with an error or not at all", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    await finishAll(machines);
    await using web = startWeb({ "/": () => ({ status: 502 }) }, undefined);
    const [node] = withWeb(machines, web);
    const deaf = { ...node!, web: { host: "127.0.0.1", httpPort: 1, httpsPort: 1 } };
    for (const [master, reason] of [
      [node!, "status 502"],
      [deaf, "it refuses the connection"],
    ] as const) {
      const cluster = exampleCluster([master], "oss");
      await waitsFor(new RegExp(`master_0: HTTP at 127\\.0\\.0\\.1: ${reason}`), (limit) =>
        wait(machines, cluster, { skipHttpChecks: false, ...limit }),
      );
    }
  });

  test.skipIf(Bun.which("openssl") === null)(
    "must present a certificate of the cluster's authority, for the node's private address",
    async () => {
      await using folder = await scratchFolder();
      const authority = await makeAuthority(folder.path);
      await Bun.write(join(folder.path, "shown.crt"), authority.certificate);
      await using machines = await startMachines({
        roles: ["master"],
        programs: {
          curl: `#!/bin/sh\necho "$*" >>"$MACHINE/curl.log"\ncat ${folder.path}/shown.crt\n`,
        },
      });
      await finishAll(machines);
      await machines.machines[0]!.write(
        "opt/cluster/etc/bootstrap-config.json",
        '{\n  "ssl_enabled": true\n}\n',
      );
      const private_ = machines.nodes[0]!.privateAddress!;
      for (const [address, problem] of [
        [private_, undefined],
        ["10.9.9.9", "its certificate is for a different address"],
      ] as const) {
        await using web = startWeb(
          { "/nodes": () => ({ status: 200, body: [] }) },
          await authority.issue(address),
        );
        const cluster = exampleCluster(withWeb(machines, web), "oss");
        const start = (limit: Partial<ReadinessRequest>) =>
          wait(machines, cluster, { skipHttpChecks: false, ...limit });
        if (problem === undefined) await start({}).report;
        else await waitsFor(new RegExp(`HTTPS at 127\\.0\\.0\\.1: ${problem}`), start);
      }
      expect(await machines.machines[0]!.read("curl.log")).toContain(
        "https://127.0.0.1/ca/cluster-ca.crt",
      );
      const other = await makeAuthority(folder.path);
      await using web = startWeb({}, await other.issue(private_));
      const cluster = exampleCluster(withWeb(machines, web), "oss");
      // Ends with the code, for looking up the problem.
      await waitsFor(/HTTPS at 127\.0\.0\.1: .* \([A-Z_]{8,}\)$/, (limit) =>
        wait(machines, cluster, { skipHttpChecks: false, ...limit }),
      );
    },
  );
});

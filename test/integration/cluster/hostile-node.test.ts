/** Nodes with hostile processes: no file is written elsewhere, no answer is forged, no secret is saved. */

import { existsSync } from "node:fs";
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import type { NamedText } from "../../../src/backend/contract.ts";
import { openMaskedConnections } from "../../../src/cluster/connections.ts";
import { saveLogs } from "../../../src/cluster/logs/save-logs.ts";
import { LineProgress } from "../../../src/library/runtime.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { collectNodeLogs } from "../../../src/platform/node-logs.ts";
import { type Runtime, systemClock } from "../../../src/system/runtime.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { type FolderMachines, machinesLack, startMachines } from "../../support/install-machine.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const signal = neverAborted;

/** Writes everything that can be read of the commands that collect logs, and forged frames, into the journal. */
const forgingJournal = `#!/bin/sh
case " $* " in *" -n 0 "* | *_TRANSPORT*) exit 0 ;; esac
for line in /proc/[0-9]*/cmdline; do
  grep -q e2e- "$line" 2>/dev/null || continue
  tr '\\0' '\\n' <"$line" 2>/dev/null | sed 's|$| /../../../escaped|'
done
printf '%s\\n' 'units.txt aGVsbG8=' '/../../../escaped aGVsbG8=' 'journal of this computer'
`;

const cluster = (machines: FolderMachines, directory: string): ClusterRecord => ({
  ...exampleCluster(machines.nodes, "enterprise"),
  directory,
});

function runtime(lines: string[] = []): Runtime {
  return {
    environment: {},
    clock: systemClock,
    progress: new LineProgress((line) => lines.push(line)),
  };
}

const backendThatSays = (...texts: readonly NamedText[]) => ({ consoleOutput: async () => texts });

describe.skipIf(machinesLack !== undefined)("a hostile node", () => {
  test("can't add or change a log through the content of another", async () => {
    await using machines = await startMachines({
      roles: ["master"],
      programs: { journalctl: forgingJournal },
    });
    await machines.machines[0]!.write(
      "var/lib/cluster-e2e/install.log",
      "\nunits.txt aGVsbG8=\n\0\n",
    );
    const logs = await collectNodeLogs(
      cluster(machines, "/none"),
      machines.connections,
      { limitMs: 250_000 },
      signal,
    );
    const byName = new Map(logs.map(({ name, text }) => [name, text]));
    expect([...byName.keys()]).toEqual(
      ["clock.txt", "install.log", "journal.txt"].map((name) => `master_0.${name}`),
    );
    expect(byName.get("master_0.install.log")).toBe("\nunits.txt aGVsbG8=\n\0\n");
    expect(byName.get("master_0.journal.txt")).toContain("e2e-logs /../../../escaped\n");
    expect(byName.get("master_0.journal.txt")).toEndWith("journal of this computer\n");
  });

  test("with extremely long logs: the end of each is saved", async () => {
    const long = "#!/bin/sh\nyes 'the same line again and again' | head -c 3000000\necho the end\n";
    await using machines = await startMachines({
      roles: ["master"],
      programs: { journalctl: long, systemctl: long },
    });
    const names = [
      "cluster-e2e/install.log",
      "cluster-e2e/installer/genconf.log",
      "cluster-e2e/install.status",
    ];
    const text = `${"x".repeat(3_000_000)}the end\n`;
    for (const name of names) await machines.machines[0]!.write(`var/lib/${name}`, text);
    for (const name of ["cloud-init", "cloud-init-output"])
      await machines.machines[0]!.write(`var/log/${name}.log`, text);
    const logs = await collectNodeLogs(
      cluster(machines, "/none"),
      machines.connections,
      { limitMs: 250_000 },
      signal,
    );
    const found = logs.map(({ name }) => name.slice("master_0.".length));
    expect(found, logs[0]?.text.slice(0, 200)).toEqual([
      "clock.txt",
      "install.log",
      "install-status.txt",
      "genconf.log",
      "cloud-init.log",
      "cloud-init-output.log",
      "units.txt",
      "journal.txt",
      "kernel.txt",
      "cut-logs.txt",
    ]);
    expect(logs.at(-1)?.text.split(", ")).toHaveLength(logs.length - 2);
    for (const log of logs.slice(1, -1)) {
      expect(log.text).toEndWith("the end\n");
      expect(log.text.length).toBeLessThanOrEqual(500_000);
    }
  });

  test("can't make the program write outside the folder, or replace its own files, with forged names", async () => {
    await using scratch = await scratchFolder();
    await using machines = await startMachines({
      roles: ["master"],
      programs: { journalctl: forgingJournal },
    });
    const directory = join(scratch.path, "state", "cluster");
    await machines.openTo(directory);
    const key = await readFile(join(directory, "id_ed25519"), "utf8");
    const hostile = [
      "../escaped",
      "/escaped",
      "id_ed25519",
      "creation.json",
      "log",
      "x/../../escaped",
      "master_0.\n",
      "",
    ];
    const lines: string[] = [];
    const { files } = await saveLogs(
      { ...runtime(lines), signal },
      backendThatSays(...hostile.map((name) => ({ name, text: "owned" }))),
      { cluster: cluster(machines, directory), folder: directory },
    );
    expect(files).toEqual(["clock", "journal"].map((name) => `master_0.${name}.txt`));
    expect(await readFile(join(directory, "id_ed25519"), "utf8")).toBe(key);
    expect((await readdir(directory)).toSorted()).toEqual([
      "events.jsonl",
      "id_ed25519",
      "known_hosts",
      "master_0.clock.txt",
      "master_0.journal.txt",
    ]);
    expect(await readdir(scratch.path)).toEqual(["state"]);
    expect(await readdir(join(scratch.path, "state"))).toEqual(["cluster"]);
    expect(lines.filter((line) => line.includes("a log was not saved"))).toHaveLength(
      hostile.length,
    );
  });

  const license = "LICENSE-7f3a9c\nsecond-license-line";
  const hash = "$6$rounds=656000$salt$0123456789abcdefghij";
  const token = "0f1e2d3c4b5a69788796a5b4c3d2e1f0";
  const configuration = `license_key_contents: ${JSON.stringify(license)}\nsuperuser_password_hash: "${hash}"\n`;
  const leaks = `saw ${license}, ${Buffer.from(license).toString("base64")}, ${hash} and \x1b[1m${token.slice(0, 9)}\x1b[0m${token.slice(9)}`;

  async function saveFromElsewhere(
    machines: FolderMachines,
    change: (given: ClusterRecord) => ClusterRecord,
  ) {
    const scratch = await scratchFolder();
    const directory = join(scratch.path, "cluster");
    await machines.openTo(directory);
    const [master, agent] = machines.machines;
    await master!.write("var/lib/cluster-e2e/installer/genconf/config.yaml", configuration);
    await master!.write(
      "opt/cluster/etc/login.json",
      JSON.stringify({ uid: "admin", token_secret: token }),
    );
    await agent!.write("var/lib/cluster-e2e/install.log", leaks);
    const lines: string[] = [];
    const { folder, files } = await saveLogs(
      { ...runtime(lines), signal },
      backendThatSays({ name: "agent_0.console.txt", text: leaks }),
      { cluster: change(cluster(machines, directory)), folder: join(scratch.path, "logs") },
    );
    const texts = await Promise.all(
      files.map(async (name) => readFile(join(folder, name), "utf8")),
    );
    await scratch[Symbol.asyncDispose]();
    return { files, text: texts.join(""), lines };
  }

  // Shows R124.
  test("whose logs contain secrets: they are masked, also if another process created the cluster", async () => {
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const { files, text, lines } = await saveFromElsewhere(machines, (given) => given);
    expect(files).toContain("agent_0.console.txt");
    expect(files).toContain("agent_0.install.log");
    expect(text).toContain("saw ***");
    for (const secret of [
      "7f3a9c",
      "second-license-line",
      hash,
      "0123456789abcdefghij",
      token,
      token.slice(9),
    ])
      expect(text).not.toContain(secret);
    expect(text).not.toContain(Buffer.from(license).toString("base64").slice(0, 20));
    expect(lines.filter((line) => line.includes("Warning"))).toEqual([]);
  });

  test("without an answer of the first master: a warning says that logs may show secrets", async () => {
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const { lines } = await saveFromElsewhere(machines, (given) => ({
      ...given,
      nodes: given.nodes.map((node) =>
        node.role === "master" ? { ...node, ssh: { ...node.ssh, port: 1 } } : node,
      ),
    }));
    expect(lines.join("\n")).toContain("Warning: these logs may show secrets");
  });

  test("that fails to return the secrets is asked again before anything else is read", async () => {
    await using scratch = await scratchFolder();
    // The first base64 never arrives, because the machine is disconnected.
    const base64 = `#!/bin/sh\nif [ ! -e "$MACHINE/run/asked" ]; then : >"$MACHINE/run/asked"; sleep 30; fi\nexec /usr/bin/base64 "$@"\n`;
    await using machines = await startMachines({ roles: ["master"], programs: { base64 } });
    const directory = join(scratch.path, "cluster");
    await machines.openTo(directory);
    const [master] = machines.machines;
    await master!.write("var/lib/cluster-e2e/installer/genconf/config.yaml", configuration);
    const around = runtime();
    await using connections = openMaskedConnections(cluster(machines, directory), around);
    const connection = await connections.connect(master!.node, signal);
    const running = connection.run({ argv: ["true"] }, signal);
    while (!existsSync(join(master!.folder, "run/asked"))) await Bun.sleep(20);
    master!.cutConnections();
    expect(running).rejects.toThrow("was lost");
    await running.catch(() => {});
    const again = await connections.connect(master!.node, signal);
    await again.run({ argv: ["true"] }, signal);
    expect(around.progress.mask(hash)).toBe("***");
    expect(connections.problem()).toBeUndefined();
  });

  test("whose secrets appear later is asked for them again", async () => {
    await using scratch = await scratchFolder();
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const directory = join(scratch.path, "cluster");
    await machines.openTo(directory);
    const around = runtime();
    await using connections = openMaskedConnections(cluster(machines, directory), around);
    const [master, agent] = machines.machines;
    const ask = async (node: NodeRecord) =>
      (await connections.connect(node, signal)).run({ argv: ["true"] }, signal);
    await ask(agent!.node);
    expect(around.progress.mask(hash)).toBe(hash);
    await master!.write("var/lib/cluster-e2e/installer/genconf/config.yaml", configuration);
    await ask(master!.node);
    expect(around.progress.mask(hash)).toBe("***");
    // Until its installation has ended, the platform may make more of them.
    await master!.write("var/lib/cluster-e2e/install.status", "exit 0\n");
    await ask(master!.node);
    const asked = master!.commands.filter((line) => line.includes("e2e-secrets")).length;
    await ask(master!.node);
    expect(master!.commands.filter((line) => line.includes("e2e-secrets"))).toHaveLength(asked);
    expect(connections.problem()).toBeUndefined();
  });
});

/** How a node's files, processes and users can influence its answers, and how much of them is read. */

import { chmod, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import { consoleOutput } from "../../../src/backend/vm/machines/console-sink.ts";
import { machineFiles } from "../../../src/backend/vm/machines/machine-process.ts";
import { nodeScript, parseNodeReport } from "../../../src/platform/readiness/node-question.ts";
import { readResolvers } from "../../../src/platform/resolvers.ts";
import { createToken, deliverCommand, endCommand } from "../../../src/ssh/session/session-line.ts";
import { runProgram } from "../../../src/system/processes/run-program.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";
import { neverAborted } from "../../support/never-aborted.ts";

const signal = neverAborted;

test.skipIf(machinesLack !== undefined)(
  "the content of a node's files can't forge a report of its installation",
  async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const [machine] = machines.machines;
    const forged = String.raw`\ncheck.status=0\nlog=forged\n`;
    await machine!.write("var/lib/cluster-e2e/layout", "cluster\n");
    await machine!.write("var/lib/cluster-e2e/install.status", "exit 0\n");
    await machine!.write(
      "opt/cluster/etc/bootstrap-config.json",
      `{"ssl_enabled": true, "motd": "${forged}"}`,
    );
    await machine!.write(
      "opt/cluster/bin/check",
      "#!/bin/sh\nprintf 'bad\\ncheck.status=0\\nstatus=exit 9\\n'\nexit 2\n",
    );
    await chmod(join(machine!.folder, "opt/cluster/bin/check"), 0o755);
    const connection = await machines.connections.connect(machine!.node, signal);
    const { stdout } = await connection.run(
      { argv: ["sh", "-s"], sudo: true, stdin: nodeScript },
      signal,
    );
    expect(parseNodeReport(stdout)).toMatchObject({
      layout: "cluster",
      status: "exit 0",
      checkStatus: 2,
      checkOutput: "bad\ncheck.status=0\nstatus=exit 9",
      isTlsEnabled: true,
      log: [],
    });
  },
);

/** Waits until a process runs a different program from the one that it started as. */
const hasLeft = async (program: string, { pid }: Bun.Subprocess): Promise<void> =>
  until(`${pid} has left ${program}`, async () => {
    const words = await Bun.file(`/proc/${pid}/cmdline`).text();
    return words !== "" && !words.startsWith(`${program}\0`);
  });

// Shows R132.
test("a process can't choose by its name which processes the end of a session kills", async () => {
  await using scratch = await scratchFolder();
  const victim = Bun.spawn(["setsid", "sleep", "60"]);
  await hasLeft("setsid", victim);
  // In /proc/PID/stat the name comes second and may contain spaces. This one makes the victim's group the fifth word.
  const program = join(scratch.path, `a b c ${victim.pid} x`);
  await writeFile(program, "#!/bin/sh\nsleep 60\n", { mode: 0o755 });
  const session = createToken();
  const attacker = Bun.spawn(["setsid", program, session]);
  await hasLeft("setsid", attacker);
  const { argv } = endCommand({ token: session, asRoot: false });
  await Bun.spawn([...argv]).exited;
  expect(await attacker.exited).not.toBe(0);
  expect(victim.killed || victim.exitCode !== null).toBe(false);
  expect((await Bun.file(`/proc/${victim.pid}/stat`).text()).length).toBeGreaterThan(0);
  victim.kill();
  await victim.exited;
});

test("a session's script is not written to a folder behind another user's link", async () => {
  await using scratch = await scratchFolder();
  const token = createToken();
  const link = join("/dev/shm", token);
  await symlink(scratch.path, link);
  try {
    const { argv, stdin } = deliverCommand({ token, asRoot: false }, "export SECRET=1\n");
    const child = Bun.spawn([...argv], { stdin: Buffer.from(stdin as string), stderr: "pipe" });
    expect(await child.exited).not.toBe(0);
    expect(await readdir(scratch.path)).toEqual([]);
  } finally {
    await rm(link);
  }
});

test("name servers are valid addresses, whatever the node's file contains", async () => {
  const stdout = "10.0.0.2\n....\n999.1.1.1\n$(id)\n10.0.0.2\nfe80::1\n10.0.0.3\n";
  const connection: Parameters<typeof readResolvers>[0] = {
    isOpen: true,
    run: async () => ({ status: 0, stdout, stderr: "" }),
    upload: async () => {},
    openPort: async () => Promise.reject(new Error("there is none")),
    [Symbol.asyncDispose]: async () => {},
  };
  expect(await readResolvers(connection, signal)).toEqual(["10.0.0.2", "10.0.0.3"]);
});

test("only the end of a program's endless output is kept", async () => {
  const argv = ["sh", "-c", "head -c 5000000 /dev/zero | tr '\\0' x; echo the end"] as const;
  const { stdout } = await runProgram(
    { argv, environment: process.env, keptCharacters: 1000 },
    signal,
  );
  expect(stdout).toEndWith("the end\n");
  expect(stdout.length).toBeLessThan(200_000);
});

test("only the end of a virtual machine's console is read", async () => {
  await using scratch = await scratchFolder();
  const node = { id: "i-1", role: "master", index: 0 } as Parameters<typeof consoleOutput>[1];
  const { console: path } = machineFiles(scratch.path, node);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, `${"x".repeat(3_000_000)}\nthe end\n`);
  const text = await consoleOutput(scratch.path, node);
  expect(text.length).toBe(1_000_000);
  expect(text).toEndWith("the end\n");
});

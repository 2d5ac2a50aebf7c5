/** What a node says reaches nobody before the cluster's secrets are known, even where they are read slowly. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { LineProgress } from "../../../../src/cluster/library/line-progress.ts";
import { openMaskedConnections } from "../../../../src/cluster/connections/masked-connections.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const signal = new AbortController().signal;
const hash = "$6$rounds=656000$salt$0123456789abcdefghij";

/** The secrets are sent through base64, which waits here until it may go on. */
const base64 = `#!/bin/sh
until [ -e "$MACHINE/run/go" ]; do sleep 0.02; done
exec /usr/bin/base64 "$@"
`;

async function start() {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles: ["master", "agent"], programs: { base64 } });
  const directory = join(scratch.path, "cluster");
  await machines.openTo(directory);
  const [master, agent] = [machines.machines[0]!, machines.machines[1]!];
  await master.write("var/lib/cluster-e2e/installer/genconf/config.yaml", `superuser_password_hash: "${hash}"\n`);
  const lines: string[] = [];
  const progress = new LineProgress((line) => lines.push(line));
  const cluster = { ...exampleCluster(machines.nodes, "enterprise"), directory };
  const connections = openMaskedConnections(cluster, { clock: systemClock, progress });
  return {
    master,
    agent,
    connections,
    progress,
    lines,
    hasRun: (node: typeof master, name: string) => existsSync(join(node.folder, "run", name)),
    [Symbol.asyncDispose]: async () => {
      await master.write("run/go", "");
      await connections[Symbol.asyncDispose]();
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const saying = (name: string) => ({ argv: ["sh", "-c", `: >"$MACHINE/run/${name}"; echo '${hash}'`] });

describe.skipIf(machinesLack !== undefined)("before the secrets are known", () => {
  test("a command whose output is hidden runs, but its result waits", async () => {
    await using given = await start();
    const results = [given.master, given.agent].map(async (node) => {
      const connection = await given.connections.connect(node.node, signal);
      const { stdout } = await connection.run({ ...saying("hidden"), isOutputHidden: true }, signal);
      return [stdout.trim(), given.progress.mask(hash)];
    });
    for (const node of [given.master, given.agent]) await until("it ran", () => given.hasRun(node, "hidden"));
    expect(given.progress.mask(hash)).toBe(hash);
    await given.master.write("run/go", "");
    expect(await Promise.all(results)).toEqual([
      [hash, "***"],
      [hash, "***"],
    ]);
  }, 60_000);

  test("a command whose output is shown doesn't begin", async () => {
    await using given = await start();
    const connection = await given.connections.connect(given.agent.node, signal);
    const shown = connection.run(saying("shown"), signal);
    const followed = connection.run({ ...saying("followed"), isOutputHidden: true, onOutput: () => {} }, signal);
    const hidden = connection.run({ ...saying("hidden"), isOutputHidden: true }, signal);
    await until("it ran", () => given.hasRun(given.agent, "hidden"));
    expect(given.hasRun(given.agent, "shown")).toBe(false);
    expect(given.hasRun(given.agent, "followed")).toBe(false);
    await given.master.write("run/go", "");
    await Promise.all([shown, followed, hidden]);
    expect(given.hasRun(given.agent, "shown")).toBe(true);
    expect(given.lines.join("\n")).not.toContain("0123456789abcdefghij");
  }, 60_000);
});

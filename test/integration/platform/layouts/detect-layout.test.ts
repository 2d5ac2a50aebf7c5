import { expect, test } from "bun:test";
import { layouts } from "../../../../src/platform/layouts/find-layout.ts";
import { layoutLines } from "../../../../src/platform/readiness/node-question.ts";
import { machinesLack, startMachines } from "../../../support/install-machine.ts";

const { signal } = new AbortController();

test.skipIf(machinesLack !== undefined)("detects the layout from a node's files", async () => {
  await using machines = await startMachines({ roles: ["master"] });
  const machine = machines.machines[0]!;
  const connection = await machines.connections.connect(machine.node, signal);
  const argv = ["sh", "-c", `${layoutLines(layouts)}printf %s "$layout"`];
  const looking = { argv, sudo: true, limitMs: 30_000, task: "checking what is installed" };
  expect((await connection.run(looking, signal)).stdout).toBe("");
  await machine.write("opt/mesosphere/etc/dcos-version.json", "{}");
  expect((await connection.run(looking, signal)).stdout).toBe("dcos");
  await machine.write("var/lib/cluster-e2e/layout", "cluster\n");
  expect((await connection.run(looking, signal)).stdout).toBe("cluster");
});

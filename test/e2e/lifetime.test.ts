/** A cluster of containers ends by itself when its time is over, and the next command removes what is left of it. */
import { expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { docker, nodeImage, startTestContainers } from "./support/test-containers.ts";

const platform = join(import.meta.dir, "support", "meter");
const lifetimeMs = 75_000;

// Shows R41.
test("nodes end when the lifetime is over, even after a restart, and paused ones with the next command", async () => {
  await using containers = await startTestContainers();
  const id = containers.id("short");
  const beganMs = Date.now();
  const words = [
    "--lifetime",
    `${lifetimeMs / 1000}s`,
    "--node-image",
    nodeImage,
    "--agents",
    "2",
    "-c",
    id,
  ];
  const created = await containers.run(["create", ...words, platform]);
  expect({ status: created.status }, created.stderr).toEqual({ status: 0 });
  expect(created.stderr).toMatch(/The cluster ends \d\d:\d\d UTC \(in \d+ (?:s|min)\)/);
  const inspected = await containers.run(["inspect", "-c", id]);
  expect(inspected.stdout).toMatch(/^Ends +\d\d:\d\d UTC \(in \d+ (?:s|min)\)/m);
  const listed = await containers.run(["list"]);
  expect(listed.stdout).toContain("TIME LEFT");
  for (const action of ["restart agent_0", "pause agent_1"])
    expect(await containers.run(["node", ...action.split(" "), "-c", id])).toMatchObject({
      status: 0,
    });

  // Neither stopping its unit, nor killing it, nor an offset of the clock that nobody stands for prolongs a node's life.
  const script = `systemctl stop cluster-e2e-deadline 2>/dev/null && echo stopped
systemctl restart cluster-e2e-deadline 2>/dev/null && echo restarted
echo 1000000 >/run/cluster-e2e-clock-offset
systemctl kill --signal=KILL cluster-e2e-deadline
until systemctl is-active cluster-e2e-deadline; do sleep 0.2; done`;
  const attacked = await containers.run([
    "run",
    "-c",
    id,
    "--no-test-env",
    "--node",
    "agent_0",
    script,
  ]);
  expect(attacked.stdout.trim().split("\n").at(-1), attacked.stderr).toBe("active");
  expect(attacked.stdout).not.toMatch(/stopped|restarted/);

  const stateOf = async (node: string): Promise<string> =>
    (
      await docker(["inspect", "--format={{.State.Status}}", `cluster-e2e-${id}-${node}`]).catch(
        () => "gone",
      )
    ).trim();
  const hasEnded = async (node: string): Promise<boolean> =>
    ["exited", "gone"].includes(await stateOf(node));
  const limitMs = beganMs + lifetimeMs + 120_000;
  while (!((await hasEnded("master_0")) && (await hasEnded("agent_0"))) && Date.now() < limitMs)
    await Bun.sleep(500);
  // Another test's program may have removed them already.
  expect(
    [await stateOf("master_0"), await stateOf("agent_0")].filter((state) => state !== "gone"),
  ).not.toContain("running");
  expect(Date.now()).toBeGreaterThan(beganMs + lifetimeMs - 1000);

  const after = await containers.run(["run", "-c", id, "true"]);
  expect(after.status, after.stderr).toBe(3);
  expect(after.stderr).toContain("[cluster-not-found]");
  expect((await containers.run(["list", "--quiet"])).stdout).not.toContain(id);
  expect(await containers.things(id)).toEqual([]);
  const [folder = ""] = (await readdir(containers.stateFolder)).filter((name) =>
    name.startsWith(`${id}-`),
  );
  expect(await readdir(join(containers.stateFolder, folder))).toContain("log");
});

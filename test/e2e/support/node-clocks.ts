/** What the nodes' clocks show beside each other, measured as NTP does: the quickest of several answers tells most. */
import { expect } from "bun:test";
import { join } from "node:path";
import type { TestVms } from "./test-vms.ts";

const samples = 12;
const mostMs = 50;

interface Offset {
  readonly ms: number;
  /** The measurement is wrong by this at most. */
  readonly uncertainMs: number;
}

/**
 * Expects that no two nodes are farther apart than 50 ms, apart from what could not be told when their clocks were set, of which `said` tells with -vv, and
 * cannot be told now.
 */
export async function expectEqualClocks(
  vms: TestVms,
  cluster: string,
  said: string,
): Promise<void> {
  const config = join(vms.folder, `${cluster}.clocks.ssh`);
  const shown = await vms.run(["inspect", "-c", cluster, "--output", "ssh-config"]);
  await Bun.write(config, shown.stdout);
  const { nodes } = await vms.inspect(cluster);
  const offsets = await Promise.all(
    nodes.map(async ({ reference }) => offsetOf(config, reference)),
  );
  const settings = [...said.matchAll(/ differs by -?\d+ ms, measured within (\d+) ms/g)];
  expect(settings.length, said).toBeGreaterThan(0);
  const setWithinMs = Math.max(...settings.map(([, ms]) => Number(ms)));
  for (const one of offsets)
    for (const other of offsets)
      expect(Math.abs(one.ms - other.ms), JSON.stringify(offsets)).toBeLessThanOrEqual(
        mostMs + setWithinMs + one.uncertainMs + other.uncertainMs,
      );
}

async function offsetOf(config: string, node: string): Promise<Offset> {
  const loop = "bash -c 'while read -r word; do echo $EPOCHREALTIME; done'";
  const child = Bun.spawn(["ssh", "-F", config, "-o", "BatchMode=yes", node, loop], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let best: Offset = { ms: Number.NaN, uncertainMs: Infinity };
  for (let asked = 0; asked < samples; asked += 1) {
    const before = performance.timeOrigin + performance.now();
    await child.stdin.write("ask\n");
    await child.stdin.flush();
    const { value = "" } = await lines.read();
    const after = performance.timeOrigin + performance.now();
    const uncertainMs = (after - before) / 2;
    if (uncertainMs < best.uncertainMs)
      best = { ms: Number(value) * 1000 - (before + after) / 2, uncertainMs };
  }
  await child.stdin.end();
  expect(await child.exited).toBe(0);
  return best;
}

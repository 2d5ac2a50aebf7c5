/** What `report` takes for the logs that a cluster of ten nodes left: a million lines. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Row, inMegabytes, inSeconds, rowOf, time } from "./measure.ts";

const rounds = 5;
const limits = { seconds: 10, megabytes: 300 } as const;
const nodes = 10;
const kinds = ["journal.txt", "etcd.log", "install.log", "kernel.txt", "app.log"] as const;
const linesEach = 20_000;

export async function measureReport(executable: string): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  try {
    const id = `bench-${process.pid}`;
    await writeLogs(join(folder, "cluster-e2e", "container", "docker", `${id}-0123456789abcdef`));
    const words = ["report", "--engine", "docker", "-c", id, join(folder, "report.html")];
    const timings: { readonly seconds: number; readonly peakMegabytes: number }[] = [];
    for (let round = 0; round < rounds; round += 1)
      timings.push(await time([executable, ...words], { XDG_STATE_HOME: folder }));
    const what = `report of ${nodes} nodes with ${nodes * kinds.length * linesEach} lines`;
    const by = "its limit";
    return [
      rowOf({
        what,
        values: timings.map(({ seconds }) => seconds),
        unit: inSeconds,
        references: [limits.seconds],
        by,
        limit: 1,
      }),
      rowOf({
        what: `${what}, peak memory`,
        values: timings.map(({ peakMegabytes }) => peakMegabytes),
        unit: inMegabytes,
        references: [limits.megabytes],
        by,
        limit: 1,
      }),
    ];
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** As `logs` leaves them, of a cluster that is gone. Each file stays below the part that a report reads of it. */
async function writeLogs(directory: string): Promise<void> {
  const logs = join(directory, "logs-2026-11-29T10-00-00Z");
  await mkdir(logs, { recursive: true });
  const startMs = Date.parse("2026-11-29T10:00:00Z");
  for (let node = 0; node < nodes; node += 1) {
    for (const kind of kinds) {
      const lines = Array.from({ length: linesEach }, (_, index) => {
        const at = new Date(startMs + index * 50 + node).toISOString().replace("Z", "000+0000");
        return `${at} agent-${node} etcd[812]: applied index ${index} of this node, no ${index % 7}`;
      });
      await Bun.write(join(logs, `agent_${node}.${kind}`), `${lines.join("\n")}\n`);
    }
  }
  const event = { at: new Date(startMs).toISOString(), kind: "command", line: "create" };
  await Bun.write(join(directory, "events.jsonl"), `${JSON.stringify(event)}\n`);
}

/** What it costs `once` to watch ten nodes while its command runs. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provideBase } from "./dcos.ts";
import { type Row, type Timing, inMegabytes, inSeconds, rowOf, time } from "./measure.ts";

const rounds = 3;
const limits = { share: 1.02, megabytes: 50 } as const;
const size = [
  "--masters",
  "1",
  "--agents",
  "9",
  "--public-agents",
  "0",
  "--linux-distribution",
  "debian-12",
];
const command = "sleep 60";

/** A platform that does nothing, on containers. */
export async function measureWatch(executable: string): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  try {
    await provideBase();
    const platform = join(folder, "platform");
    await mkdir(platform);
    await writeFile(join(platform, "platform.yaml"), 'name: nothing\nversion: "1.0"\n');
    for (const name of ["install", "check"])
      await writeFile(join(platform, name), "#!/bin/sh\n", { mode: 0o755 });
    const environment = { XDG_STATE_HOME: join(folder, "state") };
    const once = async (...words: readonly string[]): Promise<Timing> =>
      time([executable, "once", ...size, ...words, platform, "--", command], environment);
    // The first builds the image.
    await once();
    const [plain, watched]: [Timing[], Timing[]] = [[], []];
    for (let round = 0; round < rounds; round += 1) {
      plain.push(await once("--ignore", "all"));
      watched.push(await once());
    }
    return rowsOf(plain, watched);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function rowsOf(plain: readonly Timing[], watched: readonly Timing[]): readonly Row[] {
  const what = `once on 10 nodes, ${command}`;
  const peaks = (timings: readonly Timing[]) => timings.map(({ peakMegabytes }) => peakMegabytes);
  return [
    rowOf({
      what,
      values: watched.map(({ seconds }) => seconds),
      unit: inSeconds,
      references: plain.map(({ seconds }) => seconds),
      by: "--ignore all",
      limit: limits.share,
    }),
    rowOf({
      what: `${what}, peak memory`,
      values: peaks(watched),
      unit: inMegabytes,
      references: [limits.megabytes],
      by: "its limit",
      less: { values: peaks(plain), by: "--ignore all" },
      limit: 1,
    }),
  ];
}

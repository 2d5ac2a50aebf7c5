/** What it costs to watch ten nodes while a command runs, as a share of a `once`. All commands run on one cluster: two creations differ by more than that. */
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { provideBase } from "./dcos.ts";
import { type Row, type Timing, inMegabytes, inSeconds, rowOf, time } from "./measure.ts";

const rounds = 7;
const limits = { share: 1.02, megabytes: 50 } as const;
const [size, onceCommand, runCommand] = [
  "--masters 1 --agents 9 --public-agents 0 --linux-distribution debian-12",
  "sleep 60",
  "sleep 10",
];
const unwatched = ["--ignore", "all"];

/** A platform that does nothing, on containers. */
export async function measureWatch(executable: string): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  const id = `bench-${process.pid}`;
  const environment = { XDG_STATE_HOME: join(folder, "state") };
  const run = async (...words: readonly string[]): Promise<Timing> =>
    time([executable, ...words, "-c", id], environment);
  try {
    await provideBase();
    const platform = join(folder, "platform");
    await mkdir(platform);
    await writeFile(join(platform, "platform.yaml"), 'name: nothing\nversion: "1.0"\n');
    for (const name of ["install", "check"])
      await writeFile(join(platform, name), "#!/bin/sh\n", { mode: 0o755 });
    const given = [...size.split(" "), platform];
    await run("create", "--wait", ...given);
    const [plain, watched]: [Timing[], Timing[]] = [[], []];
    try {
      for (let round = 0; round < rounds; round += 1) {
        plain.push(await run("run", "--watch", ...unwatched, runCommand));
        watched.push(await run("run", "--watch", runCommand));
      }
    } finally {
      await run("destroy", "--yes");
    }
    const words = [executable, "once", "-c", id, ...unwatched, ...given, "--", onceCommand];
    return rowsOf(await time(words, environment), plain, watched);
  } finally {
    await rm(folder, { recursive: true });
  }
}

function rowsOf(
  once: Timing,
  plain: readonly Timing[],
  watched: readonly Timing[],
): readonly Row[] {
  const what = `once on 10 nodes, ${onceCommand}, watched`;
  const peaks = (timings: readonly Timing[]) => timings.map(({ peakMegabytes }) => peakMegabytes);
  return [
    rowOf({
      what,
      values: watched.map(
        ({ seconds }, round) => once.seconds + seconds - (plain[round]?.seconds ?? Number.NaN),
      ),
      unit: inSeconds,
      references: [once.seconds],
      by: unwatched.join(" "),
      limit: limits.share,
    }),
    rowOf({
      what: `${what}, peak memory`,
      values: peaks(watched),
      unit: inMegabytes,
      references: [limits.megabytes],
      by: "its limit",
      less: { values: peaks(plain), by: unwatched.join(" ") },
      limit: 1,
    }),
  ];
}

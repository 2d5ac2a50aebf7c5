/** What `run true` takes, against plain ssh to the same node with the same key: with a login of its own, without one, and with a slow API. */
import { startBenchCloud } from "./local-cloud.ts";
import type { Row } from "./measure.ts";
import { elapsed, inMilliseconds, rowOf, time } from "./measure.ts";
import {
  closeMasters,
  createSampleCluster,
  mastersOpen,
  writeSshConfig,
} from "./sample-cluster.ts";

const rounds = 15;
const coldLimit = 1.1;
const warmLimit = 0.3;
/** In which the node ends the login before, so that it doesn't slow down the next one. */
const settleMs = 200;
const slowApiMs = 300;
/** Less than a start of the program and the API's delay: it would exceed this if it waited. */
const slowLimit = 1.3;

/** On one container machine with the sample platform. What `run` shares with every command is subtracted: `list`, which is a start and a request. */
export async function measureRun(executable: string): Promise<readonly Row[]> {
  const usual = await measureAt(executable, 0);
  const slow = await measureAt(executable, slowApiMs);
  const slowName = `API takes ${slowApiMs} ms`;
  const rows = [
    { what: "run true, first", at: usual, kind: "cold", limit: coldLimit },
    { what: "run true, again", at: usual, kind: "warm", limit: warmLimit },
    { what: `run true, first, ${slowName}`, at: slow, kind: "cold", limit: slowLimit },
    { what: `run true, again, ${slowName}`, at: slow, kind: "warm", limit: warmLimit },
  ] as const;
  return rows.map(({ what, at, kind, limit }) =>
    rowOf({
      what,
      values: at[kind],
      unit: inMilliseconds,
      references: at.plain,
      by: "plain ssh",
      less: { values: usual.list, by: "list" },
      limit,
    }),
  );
}

/** Seconds of each command, by rounds. */
type Times = Readonly<Record<"plain" | "list" | "cold" | "warm", readonly number[]>>;

async function measureAt(executable: string, apiDelayMs: number): Promise<Times> {
  await using cloud = await startBenchCloud("container", ["--api-delay-ms", String(apiDelayMs)]);
  await createSampleCluster(executable, cloud, { agents: 0 });
  const config = await writeSshConfig(executable, cloud);
  const commands = {
    plain: ["ssh", "-F", config, "master_0", "true"],
    list: [executable, "list"],
    cold: [executable, "run", "true"],
    warm: [executable, "run", "true"],
  } as const;
  const seconds = { plain: [], list: [], cold: [], warm: [] } as Record<keyof Times, number[]>;
  // The first run has no last known address.
  await time(commands.cold, cloud.environment);
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, argv] of Object.entries(commands) as [keyof Times, readonly string[]][]) {
      if (name === "cold") await closeMasters(cloud);
      if (name === "warm") await mastersOpen(cloud, 1);
      await Bun.sleep(settleMs);
      seconds[name].push(await elapsed(argv, cloud.environment));
    }
  }
  await closeMasters(cloud);
  return seconds;
}

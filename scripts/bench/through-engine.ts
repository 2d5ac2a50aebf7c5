/** What it costs to reach nodes through Docker: in a network of its own, the program finds no bridge of that Docker, and no way to an address. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Row, elapsed, inSeconds, rowOf, time } from "./measure.ts";
import { closeMasters } from "./sample-cluster.ts";
import { lastOf, spoken } from "./spoken.ts";

const image = "localhost/cluster-e2e-machine:debian-12";
const id = `bench-${process.pid}`;
const ways = { direct: [], engine: ["unshare", "--net"] } as const;
const rounds = { create: 5, login: 15 } as const;
const limits = { create: 1.5, loginSeconds: 0.3 } as const;

type Times = Readonly<Record<keyof typeof ways, number[]>>;

/** Three nodes of example:bare, by both ways in turn. */
export async function measureThroughEngine(executable: string): Promise<readonly Row[]> {
  const folder = await mkdtemp(join(tmpdir(), "cluster-e2e-bench-"));
  const environment = { XDG_STATE_HOME: join(folder, "state") };
  const [created, logins]: [Times, Times] = [
    { direct: [], engine: [] },
    { direct: [], engine: [] },
  ];
  const counts = ["--agents", "1", "--public-agents", "1"];
  const words = ["create", "-vv", "--node-image", image, "-c", id, ...counts, "example:bare"];
  const destroy = async () => time([executable, "destroy", "-c", id], environment);
  const inTurn = async (measure: (way: keyof typeof ways) => Promise<unknown>, count: number) => {
    for (let round = 0; round < count; round += 1)
      for (const way of ["direct", "engine"] as const) await measure(way);
  };
  const create = async (way: keyof typeof ways): Promise<void> => {
    const lines = await spoken([...ways[way], executable, ...words], environment);
    created[way].push(lastOf(lines, /: Boot: done/, 3));
  };
  const logIn = async (way: keyof typeof ways): Promise<void> => {
    await closeMasters({ folder });
    logins[way].push(
      await elapsed([...ways[way], executable, "run", "-c", id, "true"], environment),
    );
  };
  try {
    await inTurn(async (way) => {
      await create(way);
      await destroy();
    }, rounds.create);
    await create("direct");
    await inTurn(logIn, rounds.login);
    await closeMasters({ folder });
  } finally {
    // A creation that failed has left nothing.
    await destroy().catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
  return [
    rowOf({
      what: "containers: example:bare with 3 nodes through Docker, until SSH to all",
      values: created.engine,
      unit: inSeconds,
      references: created.direct.slice(0, rounds.create),
      by: "at their own addresses",
      limit: limits.create,
    }),
    rowOf({
      what: "containers: run true through Docker, first",
      values: logins.engine,
      unit: inSeconds,
      references: [limits.loginSeconds],
      by: "its limit",
      less: { values: logins.direct, by: "at its own address" },
      limit: 1,
    }),
  ];
}

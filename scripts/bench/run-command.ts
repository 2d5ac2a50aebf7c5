/** What `run true` takes, against plain ssh to the same node with the same key. */
import { join } from "node:path";
import { startBenchCloud } from "./local-cloud.ts";
import type { Row } from "./measure.ts";
import { interleaved, milliseconds, time } from "./measure.ts";

const root = join(import.meta.dir, "..", "..");
const rounds = 15;
const limit = 1.5;

/** On one container machine, with the sample platform on it. The reference is plain ssh plus one API round trip (`list`). */
export async function measureRun(executable: string): Promise<readonly Row[]> {
  await using cloud = await startBenchCloud("container", []);
  const artifact = join(cloud.folder, "artifact.sh");
  await time([join(root, "test/sample-platform/build"), "--variant", "oss", "--output", artifact]);
  const words = ["--variant", "oss", "--linux-distribution", "debian-12", "--agents", "0", "--public-agents", "0"];
  await time([executable, "create", ...words, artifact], cloud.environment);
  await time([executable, "wait"], cloud.environment);
  const config = join(cloud.folder, "cluster.ssh");
  await Bun.write(config, (await time([executable, "inspect", "--output", "ssh-config"], cloud.environment)).stdout);
  const [plain, roundTrip, run] = (await interleaved(
    [
      ["ssh", "-F", config, "master_0", "true"],
      [executable, "list"],
      [executable, "run", "true"],
    ],
    rounds,
    cloud.environment,
  )) as [number, number, number];
  return [
    {
      what: "run true",
      value: milliseconds(run),
      reference: `${milliseconds(plain)} (plain ssh) + ${milliseconds(roundTrip)} (list)`,
      ratio: (run - roundTrip) / plain,
      limit,
    },
  ];
}

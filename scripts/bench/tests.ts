/** How long the README's test command takes on this machine, with what earlier runs have left there. */
import { delimiter, join } from "node:path";
import { type Row, rowOf, time } from "./measure.ts";

const command = "./scripts/test";
const limitMinutes = 15;

export async function measureTests(): Promise<Row> {
  // As in a user's shell: `bun run` puts the project's tools first. With CI, a tier that is skipped counts as failed.
  const folders = (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => !folder.endsWith("node_modules/.bin"));
  const environment = { PATH: folders.join(delimiter), CI: "1" };
  const { seconds } = await time([join(import.meta.dir, "..", "..", command)], environment);
  return rowOf({
    what: `tests: ${command}`,
    values: [seconds / 60],
    unit: { name: " min", factor: 1, digits: 1 },
    references: [limitMinutes],
    by: "its limit",
    limit: 1,
  });
}

/** How long the README's test command takes on this machine, with what earlier runs have left there. */
import { join } from "node:path";
import { type Row, rowOf, time } from "./measure.ts";

const command = "./scripts/test";
const limitMinutes = 15;

export async function measureTests(): Promise<Row> {
  const { seconds } = await time([join(import.meta.dir, "..", "..", command)]);
  return rowOf({
    what: `tests: ${command}`,
    values: [seconds / 60],
    unit: { name: " min", factor: 1, digits: 1 },
    references: [limitMinutes],
    by: "its limit",
    limit: 1,
  });
}

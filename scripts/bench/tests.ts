/** How long the README's test commands take on this machine, with what earlier runs have left there. */
import { delimiter, join } from "node:path";
import { type Row, rowOf, time } from "./measure.ts";

interface TestCommand {
  readonly argv: readonly [script: string, ...words: string[]];
  readonly limitMinutes: number;
}

export const quickTests: TestCommand = { argv: ["./scripts/test"], limitMinutes: 10 };
export const allTests: TestCommand = { argv: ["./scripts/test", "all"], limitMinutes: 40 };

export async function measureTests({
  argv: [script, ...words],
  limitMinutes,
}: TestCommand): Promise<Row> {
  // As in a user's shell: `bun run` puts the project's tools first. With CI, a tier that is skipped counts as failed.
  const folders = (process.env["PATH"] ?? "")
    .split(delimiter)
    .filter((folder) => !folder.endsWith("node_modules/.bin"));
  const environment = { PATH: folders.join(delimiter), CI: "1" };
  const { seconds } = await time(
    [join(import.meta.dir, "..", "..", script), ...words],
    environment,
  );
  return rowOf({
    what: `tests: ${[script, ...words].join(" ")}`,
    values: [seconds / 60],
    unit: { name: " min", factor: 1, digits: 1 },
    references: [limitMinutes],
    by: "its limit",
    limit: 1,
  });
}

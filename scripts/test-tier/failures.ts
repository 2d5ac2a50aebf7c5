/** What is left of files that failed: their output, the line that runs each again, and their names for `./scripts/test --again`. */
import { appendFile, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const folder = join("dist", "failed-tests");

export interface FailedRun {
  readonly name: string;
  readonly tier: string;
  readonly text: string;
  /** Words of `bun test`, with the seed if the tests were shuffled. */
  readonly settings: readonly string[];
}

/** The files that have failed, by the output of `bun test` so far, in which a file's lines follow its name. */
export const failedIn = (text: string): readonly string[] =>
  text
    .split(/^(?=\S+\.test\.ts:$)/m)
    .filter((lines) => /^\(fail\) /m.test(lines))
    .map((lines) => lines.slice(0, lines.indexOf(":")));

/** Writes below the working directory, and names the places on stderr. */
export async function keepFailure(
  { name, tier, text, settings }: FailedRun,
  failed: readonly string[],
): Promise<void> {
  await mkdir(folder, { recursive: true });
  const log = join(folder, `${name.replaceAll("/", "-")}.log`);
  const seed = process.env["CLUSTER_E2E_SEED"];
  const variables = seed === undefined ? "" : `CLUSTER_E2E_SEED=${seed} `;
  const lines = failed.map((file) => `${variables}bun test ${settings.join(" ")} ./${file}`);
  await writeFile(log, `${text}\nRun it again:\n${lines.join("\n")}\n`);
  await appendFile(join(folder, "list"), failed.map((file) => `${tier} ${file}\n`).join(""));
  process.stderr.write(`${name}: output kept in ${log}\n${lines.join("\n")}\n`);
}

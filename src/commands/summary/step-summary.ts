import type { Context } from "../../cli/command.ts";
import { originOf } from "../../cli/error-report.ts";
import { flag } from "../../cli/options/option.ts";
import type { Problems } from "../../cli/options/problems.ts";
import { ClusterError, messageOf } from "../../errors.ts";
import { shownText } from "../../system/printable.ts";
import { variable } from "../../system/variable.ts";

export const summary = flag({
  flag: "--summary",
  summary:
    "Append a summary in Markdown to the file that GITHUB_STEP_SUMMARY names (GitHub Actions shows it)",
});

const summaryVariable = "GITHUB_STEP_SUMMARY";

/** Checks before any work that the summary can be written. */
export async function checkSummary(
  isWanted: boolean | undefined,
  problems: Problems,
  { environment }: Pick<Context, "environment">,
): Promise<void> {
  if (isWanted !== true) return;
  const path = variable(environment, summaryVariable);
  if (path === undefined) {
    problems.add(
      `--summary: the environment variable ${summaryVariable} is not set; GitHub Actions sets it in every step`,
    );
    return;
  }
  const { appendFile } = await import("node:fs/promises");
  try {
    await appendFile(path, "");
  } catch (error) {
    problems.add(
      `--summary: cannot write to the file that ${summaryVariable} names: ${messageOf(error)}`,
    );
  }
}

/**
 * Appends to the summary, if the user wants one, with secrets masked. If the file can't be written,
 * it only warns, because the work itself is done.
 */
export async function appendSummary(
  isWanted: boolean,
  markdown: string,
  { environment, progress }: Pick<Context, "environment" | "progress">,
): Promise<void> {
  const path = variable(environment, summaryVariable);
  if (!isWanted || path === undefined) return;
  const { appendFile } = await import("node:fs/promises");
  try {
    await appendFile(path, `${shownText(markdown, (text) => progress.mask(text))}\n`);
  } catch (error) {
    progress.warn(`cannot write the summary: ${messageOf(error)}`);
  }
}

export async function summarizingFailure<Result>(
  title: string,
  { isWanted, context }: { readonly isWanted: boolean; readonly context: Context },
  task: () => Promise<Result>,
): Promise<Result> {
  try {
    return await task();
  } catch (error) {
    const [{ renderFailure }, { dirname }] = await Promise.all([
      import("./render-summary.ts"),
      import("node:path"),
    ]);
    const log = context.logPath();
    const markdown = renderFailure(
      title,
      failureText(error, context),
      log === undefined ? undefined : dirname(log),
    );
    await appendSummary(isWanted, markdown, context);
    throw error;
  }
}

/** The message, the hint and the id of anything thrown. Not masked: outside text is marked. */
export function failureText(thrown: unknown, { nameFlags }: Pick<Context, "nameFlags">): string {
  const error = originOf(thrown);
  if (!(error instanceof ClusterError)) return messageOf(error);
  const { message, hint } = ClusterError.marked(error);
  const lines = [message, ...(hint === undefined ? [] : [hint])];
  return [...lines.map((line) => nameFlags(line)), `[${error.id}]`].join("\n");
}

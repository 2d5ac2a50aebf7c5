import { expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Context } from "../../../../src/cli/command.ts";
import { Problems } from "../../../../src/cli/options/problems.ts";
import type { BackendKind } from "../../../../src/backend/contract.ts";
import { appendSummary, checkSummary } from "../../../../src/commands/summary/step-summary.ts";
import { waitCommand } from "../../../../src/commands/wait.ts";
import { ClusterError } from "../../../../src/errors.ts";
import { outside } from "../../../../src/outside-text.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const secret = "tr0ub4dor";

function contextFor(path: string | undefined, warnings: string[] = []): Context {
  const progress = {
    ...silentProgress,
    mask: (text: string) => text.replaceAll(secret, "***"),
    warn: (text: string) => void warnings.push(text),
  };
  return {
    environment: { GITHUB_STEP_SUMMARY: path },
    clock: systemClock,
    signal: neverAborted,
    nameFlags: (text: string) => text.replaceAll("`timeout`", "--timeout"),
    progress,
    logPath: () => "/state/nightly/create.log",
  } as unknown as Context;
}

async function problemsWith(path: string | undefined, isWanted = true): Promise<readonly string[]> {
  const problems = new Problems("");
  await checkSummary(isWanted, problems, contextFor(path));
  return problems.all;
}

// Shows R96.
test("a summary that cannot be written is rejected before anything else happens", async () => {
  await using folder = await scratchFolder();
  for (const path of [undefined, ""]) {
    expect(await problemsWith(path)).toEqual([
      "--summary: the environment variable GITHUB_STEP_SUMMARY is not set; GitHub Actions sets it in every step",
    ]);
  }
  expect((await problemsWith(folder.path)).join()).toContain(
    "cannot write to the file that GITHUB_STEP_SUMMARY names",
  );
  expect(await problemsWith(undefined, false)).toEqual([]);
  expect(await problemsWith(join(folder.path, "new"))).toEqual([]);
});

test("a summary is appended, with secrets and terminal sequences masked", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "summary.md");
  await writeFile(path, "of an earlier step\n");
  await appendSummary(true, `### It is ${outside(secret)}\u001b[2J`, contextFor(path));
  await appendSummary(false, "nobody wants this", contextFor(path));
  expect(await readFile(path, "utf8")).toBe("of an earlier step\n### It is ***\uFFFD[2J\n");
});

test("a summary that can no longer be written is a warning", async () => {
  await using folder = await scratchFolder();
  const warnings: string[] = [];
  await appendSummary(true, "text", contextFor(folder.path, warnings));
  expect(warnings.join()).toContain("cannot write the summary: ");
});

test("wait summarizes why it failed, and fails as without a summary", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "summary.md");
  const failure = new ClusterError(
    "deadline-passed",
    `agent_0 printed ${outside(`${secret}\n</code> <img src=x>`)}`,
    {
      hint: "Pass a longer `timeout`.",
    },
  );
  const kind = {
    options: {},
    open: () => Promise.reject(failure),
  } as unknown as BackendKind;
  const command = waitCommand(kind);
  const input = {
    clusterId: "nightly",
    superuserPassword: "admin",
    timeout: 60_000,
    summary: true,
  };
  const run = command.run(input as unknown as Parameters<typeof command.run>[0], contextFor(path));
  expect(await failureOf(run)).toBe(failure);
  expect(await readFile(path, "utf8")).toBe(
    [
      "### Cluster nightly is not ready",
      "",
      "    agent_0 printed ***",
      "    </code> <img src=x>",
      "    Pass a longer --timeout.",
      "    [deadline-passed]",
      "",
      "Logs: `/state/nightly`",
      "",
      "",
    ].join("\n"),
  );
});

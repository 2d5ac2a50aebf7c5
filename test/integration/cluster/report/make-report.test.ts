import { expect, test } from "bun:test";
import { link, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { writeReport } from "../../../../src/cluster/report/make-report.ts";
import { LineProgress } from "../../../../src/library/runtime.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

test("an error in the report shows no secret and no terminal code", async () => {
  await using folder = await scratchFolder();
  const progress = new LineProgress(() => {});
  progress.hide("s3cret-word");
  const file = join(folder.path, "report.html");
  await writeReport(
    { consoleOutput: async () => [] },
    {
      cluster: undefined,
      clusterId: "nightly",
      directory: folder.path,
      file,
      junit: undefined,
      result: { isGood: false, text: "The node printed: s3cret-word \u001B[2J" },
      facts: [["image", "https://a:s3cret-word@host/"]],
      commands: [],
    },
    { clock: systemClock, progress, environment: {} },
    neverAborted,
  );
  const html = await Bun.file(file).text();
  expect(html).toContain("The node printed: ***");
  expect(html).not.toContain("s3cret-word");
  expect(html).not.toContain("\u001B");
});

test("a link in the folder of logs, which others may write to, brings no file of this user into the report", async () => {
  await using folder = await scratchFolder();
  const logs = join(folder.path, "logs");
  await mkdir(logs);
  await Bun.write(join(folder.path, "own"), "words of this user alone\n");
  await symlink(join(folder.path, "own"), join(logs, "agent_0.journal.txt"));
  await link(join(folder.path, "own"), join(logs, "agent_1.journal.txt"));
  await Bun.write(join(logs, "agent_2.journal.txt"), "2026-01-01T00:00:00Z words of a node\n");
  const file = join(folder.path, "report.html");
  await writeReport(
    { consoleOutput: async () => [] },
    {
      cluster: undefined,
      clusterId: "nightly",
      directory: join(folder.path, "none"),
      file,
      junit: undefined,
      logsFolder: logs,
      facts: [],
      commands: [],
    },
    { clock: systemClock, progress: new LineProgress(() => {}), environment: {} },
    neverAborted,
  );
  const html = await Bun.file(file).text();
  expect(html).toContain("words of a node");
  expect(html).not.toContain("words of this user");
});

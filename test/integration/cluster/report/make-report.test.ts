import { expect, test } from "bun:test";
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

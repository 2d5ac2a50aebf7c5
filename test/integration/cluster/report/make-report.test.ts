import { expect, test } from "bun:test";
import { link, mkdir, symlink, utimes, writeFile } from "node:fs/promises";
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
    { clock: systemClock, progress, environment: {}, signal: neverAborted },
    { consoleOutput: async () => [] },
    {
      cluster: undefined,
      clusterId: "nightly",
      directory: folder.path,
      file,
      junit: [],
      result: { isGood: false, text: "The node printed: s3cret-word \u001B[2J" },
      facts: [["image", "https://a:s3cret-word@host/"]],
      commands: [],
    },
  );
  const html = await Bun.file(file).text();
  expect(html).toContain("The node printed: ***");
  expect(html).not.toContain("s3cret-word");
  expect(html).not.toContain("\u001B");
});

test("of a shared folder, links and logs of earlier runs are not read; names of test cases are masked", async () => {
  await using folder = await scratchFolder();
  const progress = new LineProgress(() => {});
  progress.hide("s3cret-word");
  const logs = join(folder.path, "shared");
  const directory = join(folder.path, "own");
  const junit = join(folder.path, "junit.xml");
  const file = join(folder.path, "report.html");
  await Promise.all([logs, directory].map(async (path) => mkdir(path)));
  await writeFile(join(folder.path, "private"), "text behind a link");
  await writeFile(join(logs, "agent_0.install.log"), "log of an earlier run");
  await writeFile(join(logs, "agent_1.install.log"), "log of this run");
  await writeFile(join(logs, "agent_4.app.log"), `${"x".repeat(3_000_000)}\nthe last line\n`);
  await symlink(join(folder.path, "private"), join(logs, "agent_2.install.log"));
  await link(join(folder.path, "private"), join(logs, "agent_3.install.log"));
  await utimes(join(logs, "agent_0.install.log"), 1000, 1000);
  await writeFile(
    junit,
    '<testcase name="logs in with s3cret-word" time="1"><failure message="not s3cret-word"/></testcase>',
  );
  await writeReport(
    { clock: systemClock, progress, environment: {}, signal: neverAborted },
    { consoleOutput: async () => [] },
    {
      cluster: undefined,
      clusterId: "nightly",
      directory,
      file,
      junit: [junit, join(folder.path, "none.xml")],
      logsFolder: { path: logs, sinceMs: 2_000_000 },
      facts: [],
      commands: [],
    },
  );
  const html = await Bun.file(file).text();
  expect(html).toContain("log of this run");
  expect(html).toContain("the last line");
  expect(html).toContain("agent_4: all but the end of app.log");
  expect(html).toContain("logs in with *** <code>not ***</code>");
  expect(html).toContain("none.xml: it cannot be read, or has no test cases");
  for (const other of ["an earlier run", "behind a link", "s3cret-word"])
    expect(html).not.toContain(other);
});

test("test cases of an earlier run are not shown", async () => {
  await using folder = await scratchFolder();
  const [file, junit] = [join(folder.path, "report.html"), join(folder.path, "junit.xml")];
  await writeFile(junit, '<testcase name="logs in"/>');
  await writeReport(
    {
      clock: systemClock,
      progress: new LineProgress(() => {}),
      environment: {},
      signal: neverAborted,
    },
    { consoleOutput: async () => [] },
    {
      cluster: undefined,
      clusterId: "nightly",
      directory: folder.path,
      file,
      junit: [junit],
      junitSinceMs: Date.now() + 60_000,
      facts: [],
      commands: [],
    },
  );
  const html = await Bun.file(file).text();
  expect(html).toContain("junit.xml: it is older than this run");
  expect(html).not.toContain("logs in");
});

test("an interrupt ends the work on large logs, and writes nothing", async () => {
  await using folder = await scratchFolder();
  const file = join(folder.path, "report.html");
  const line = "2026-11-28T10:00:00.000001+00:00 host etcd[7]: a line\n";
  for (const name of ["journal.txt", "install.log"])
    await writeFile(join(folder.path, `agent_0.${name}`), line.repeat(1000));
  const stop = new AbortController();
  const progress = new LineProgress(() => {});
  // The time is asked for when all files have been read.
  const now = (): number => {
    setImmediate(() => stop.abort(new Error("Ctrl-C")));
    return systemClock.now();
  };
  const writing = writeReport(
    { clock: { ...systemClock, now }, progress, environment: {}, signal: stop.signal },
    { consoleOutput: async () => [] },
    {
      cluster: undefined,
      clusterId: "nightly",
      directory: folder.path,
      file,
      junit: [],
      facts: [],
      commands: [],
    },
  );
  expect(writing).rejects.toThrow("Ctrl-C");
  await writing.catch(() => {});
  expect(await Bun.file(file).exists()).toBe(false);
});

/** The report of a command that was interrupted, as by the time limit of a CI system. */
import { expect, test } from "bun:test";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Backend } from "../../../src/backend/contract.ts";
import { type Context, Interrupted } from "../../../src/cli/command.ts";
import { tryToReport } from "../../../src/commands/report/write-cluster-report.ts";
import { LineProgress } from "../../../src/library/runtime.ts";
import { creationDirectory } from "../../../src/store/creation-folder.ts";
import { appendEvent } from "../../../src/store/events.ts";
import { stateFolder } from "../../../src/store/state-folder.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

test("holds the logs that its cluster has left", async () => {
  await using folder = await scratchFolder();
  const environment = { XDG_STATE_HOME: folder.path };
  const root = join(stateFolder(environment), "vm", "");
  const directory = creationDirectory(root, "nightly", "0123456789abcdef");
  await mkdir(directory, { recursive: true });
  const line = "2026-11-28T10:00:00.000001+00:00 host etcd[7]: it hangs\n";
  await writeFile(join(directory, "master_0.journal.txt"), line);
  appendEvent(directory, {
    at: "2026-11-28T10:00:00.000Z",
    kind: "command",
    line: "cluster-vm once",
  });
  const told: string[] = [];
  const context = {
    clock: systemClock,
    environment,
    programName: "cluster-vm",
    progress: new LineProgress((text: string) => void told.push(text)),
    signal: AbortSignal.abort(new Interrupted("SIGTERM")),
  } as unknown as Context;
  const file = join(folder.path, "report.html");
  const result = { isGood: false, text: "Interrupted by SIGTERM" };
  const backend = { name: "vm" } as Backend<unknown>;
  const given = { clusterId: "nightly", cluster: undefined, file, junit: [], result };
  await tryToReport(backend, given, context);
  expect(told.join("\n")).not.toContain("could not be written");
  const html = await Bun.file(file).text();
  expect(html).toContain("it hangs");
  expect(html).toContain("Interrupted by SIGTERM");
});

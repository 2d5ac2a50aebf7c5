/** Clusters' files from web servers on loopback. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { obtainFile } from "../../../../src/backend/shared/obtain-file.ts";
import { acquireProcessLock } from "../../../../src/system/processes/process-identity.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";
import { webServer } from "../../platform/artifact/artifact-server.ts";

const text = "a cluster";
const sha256 = createHash("sha256").update(text).digest("hex");

async function openBench(answer: () => Response) {
  const scratch = await scratchFolder();
  const server = webServer(answer);
  const folder = join(scratch.path, "files");
  await mkdir(folder);
  const { progress, told } = recordingProgress();
  const runtime = { environment: { XDG_CACHE_HOME: scratch.path }, clock: systemClock, progress };
  const file = { location: { url: `${server.origin}/cluster.zst` }, sha256 };
  return {
    folder,
    told,
    obtain: async () => obtainFile(file, () => folder, runtime, neverAborted),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

test("while another process downloads the same file, it waits and says so", async () => {
  await using bench = await openBench(() => new Response(text));
  const lock = join(bench.folder, `cluster-${sha256}.zst.lock`);
  const other = await acquireProcessLock(lock, { clock: systemClock, onWait: () => {} }, neverAborted);
  const obtained = bench.obtain();
  await until("it says so", async () => bench.told.length > 0);
  expect(bench.told).toEqual(["Waiting for another process that downloads the same file."]);
  await other[Symbol.asyncDispose]();
  expect(await readFile((await obtained).path, "utf8")).toBe(text);
});

test("another file than the expected one is refused, and not kept", async () => {
  await using bench = await openBench(() => new Response("something else"));
  expect((await failureOf(bench.obtain())).id).toBe("snapshot-unusable");
  expect(await readdir(bench.folder)).toEqual([]);
});

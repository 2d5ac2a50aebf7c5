/** Clusters' files from web servers on loopback. */
import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdir, readFile, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { FileCopyRequest } from "../../../../src/backend/contract.ts";
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
  const { progress, told, steps } = recordingProgress();
  const runtime = { environment: { XDG_CACHE_HOME: scratch.path }, clock: systemClock, progress };
  const file = { location: { url: `${server.origin}/cluster.zst` }, sha256 };
  return {
    folder,
    told,
    steps,
    obtain: async (changes: Partial<FileCopyRequest["file"]> = {}) =>
      obtainFile({ ...runtime, signal: neverAborted }, { ...file, ...changes }, () => folder),
    [Symbol.asyncDispose]: async () => {
      await server[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

test("while another process downloads the same file, it waits and says so", async () => {
  await using bench = await openBench(() => new Response(text));
  const lock = join(bench.folder, `cluster-${sha256}.zst.lock`);
  const other = await acquireProcessLock(
    lock,
    { clock: systemClock, onWait: () => {} },
    neverAborted,
  );
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

test("a file is downloaded once, for this user alone", async () => {
  const answers = [new Response(text)];
  await using bench = await openBench(() => answers.pop() ?? new Response("gone", { status: 404 }));
  const { path } = await bench.obtain();
  expect([(await bench.obtain()).path, await readFile(path, "utf8")]).toEqual([path, text]);
  expect((await stat(bench.folder)).mode & 0o777).toBe(0o700);
  const downloaded = expect.stringMatching(/^Download the file http:.*: done$/);
  expect(bench.steps).toEqual([downloaded, downloaded]);
});

test("a download that has been damaged since is replaced", async () => {
  await using bench = await openBench(() => new Response(text));
  const { path } = await bench.obtain();
  await writeFile(path, "a clus");
  expect((await bench.obtain()).path).toBe(path);
  expect(await readFile(path, "utf8")).toBe(text);
});

test("a file of this computer stays where it is, and must have the checksum that is given", async () => {
  await using bench = await openBench(() => new Response("", { status: 404 }));
  const path = join(bench.folder, "mine");
  await writeFile(path, text);
  const location = { path, shown: "mine" };
  for (const given of [sha256, undefined])
    expect(await bench.obtain({ location, sha256: given })).toEqual({ path, shown: "mine" });
  const failure = await failureOf(bench.obtain({ location, sha256: "0".repeat(64) }));
  expect([failure.id, failure.message]).toEqual([
    "snapshot-unusable",
    `mine has the SHA-256 checksum ${sha256}, not ${"0".repeat(64)}.`,
  ]);
  // Opening it fails, with an error of its own.
  const folder = { path: bench.folder, shown: "folder" };
  expect(await bench.obtain({ location: folder })).toEqual(folder);
});

import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { type FetchSource, fetchFiles } from "../../../src/cluster/fetch.ts";
import { ClusterError } from "../../../src/errors.ts";
import type { Connection, RemoteCommand } from "../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../support/failure-of.ts";
import { recordingProgress } from "../../support/recording-progress.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { rawArchive } from "../../support/tar-blocks.ts";

const { signal } = new AbortController();
const file = rawArchive({ name: "./a", contents: "hello" });
const folder = rawArchive(
  { name: "./", type: "5", mode: 0o755 },
  { name: "./a", contents: "1" },
  { name: "./b", contents: "23" },
);

/** A node that sends this archive. */
function sending(archive: Uint8Array): FetchSource {
  const run = async ({ receive }: RemoteCommand) => {
    await receive?.(chunks(archive));
    return { status: 0, stdout: "", stderr: "" };
  };
  return { connection: { run } as unknown as Connection, node: "master_0", settings: [] };
}

async function* chunks(archive: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield archive;
}

test("each fetch shows how much has arrived", async () => {
  await using scratch = await scratchFolder();
  const { progress, steps, told } = recordingProgress();
  const sources = [sending(file), sending(folder)];
  const requests = ["/a", "/b"].map((remote) => ({ remote, local: join(scratch.path, remote) }));
  const open = async (): Promise<FetchSource> => sources.shift()!;
  expect(await fetchFiles(0, requests, { open, progress }, signal)).toBe(0);
  expect(steps).toEqual(["Fetch /a: 1 file, 5 bytes", "Fetch /b: 2 files, 3 bytes"]);
  expect(told).toEqual([]);
  expect(await readFile(join(scratch.path, "a"), "utf8")).toBe("hello");
});

const lost = (name: string) => new ClusterError("connection-failed", `${name} was lost.`);

/** Fetches three files after a command that ended with this status. The second can be fetched. */
async function fetchThree(status: number) {
  await using scratch = await scratchFolder();
  const { progress, steps, told } = recordingProgress();
  const sources = [lost("The first"), sending(file), lost("The third")];
  const requests = ["/a", "/b", "/c"].map((remote) => ({
    remote,
    local: join(scratch.path, remote),
  }));
  const open = async (): Promise<FetchSource> => {
    const source = sources.shift()!;
    if (source instanceof Error) throw source;
    return source;
  };
  const ended = await fetchFiles(status, requests, { open, progress }, signal).catch(
    (error: unknown) => error,
  );
  expect(steps).toEqual(["Fetch /a: failed", "Fetch /b: 1 file, 5 bytes", "Fetch /c: failed"]);
  return { ended, told };
}

test("after a successful command, the first failure is the error, and the others are warnings", async () => {
  expect(await fetchThree(0)).toEqual({ ended: lost("The first"), told: ["The third was lost."] });
});

test("after a failed command, all failures are warnings, and its status stays", async () => {
  expect(await fetchThree(7)).toEqual({
    ended: 7,
    told: ["The first was lost.", "The third was lost."],
  });
});

test("after an interruption, nothing more is fetched", async () => {
  await using scratch = await scratchFolder();
  const { progress, steps, told } = recordingProgress();
  const stop = new AbortController();
  const requests = ["/a", "/b"].map((remote) => ({ remote, local: join(scratch.path, remote) }));
  const open = async (): Promise<FetchSource> => {
    stop.abort(new Error("interrupted"));
    throw lost("The connection");
  };
  const failure = await failureOf(fetchFiles(7, requests, { open, progress }, stop.signal));
  expect(failure.message).toBe("interrupted");
  expect([steps, told]).toEqual([["Fetch /a: failed"], []]);
});

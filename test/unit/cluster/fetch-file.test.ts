import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, jest, test } from "bun:test";
import { fetchFile } from "../../../src/cluster/fetch.ts";
import { ClusterError } from "../../../src/errors.ts";
import type { Connection, RemoteCommand } from "../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../support/failure-of.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { rawArchive } from "../../support/tar-blocks.ts";

const { signal } = new AbortController();
const whole = rawArchive({ name: "./a", contents: "hello" });

async function* chunks(archive: Uint8Array): AsyncGenerator<Uint8Array, void, undefined> {
  yield archive;
}

interface End {
  readonly status: number;
  readonly stderr?: string;
}

/** Fetches a file from a node that sends this archive and ends like this. Only root may read the file. */
async function fetchFrom(archive: Uint8Array, { status, stderr = "" }: End, folder: string) {
  const run = async ({ receive, sudo }: RemoteCommand) => {
    if (sudo !== true) return { status: 2, stdout: "", stderr: "tar: ./a: Permission denied\n" };
    await receive?.(chunks(archive));
    return { status, stdout: "", stderr };
  };
  const source = { connection: { run } as unknown as Connection, node: "master_0", settings: [] };
  return await fetchFile({ remote: "/a", local: join(folder, "a") }, source, signal);
}

test.each([
  ["a file that only root may read", { status: 0 }],
  ["a log that grows meanwhile", { status: 1, stderr: "tar: ./a: file changed as we read it\n" }],
])("%s is fetched", async (_, end) => {
  await using folder = await scratchFolder();
  expect(await fetchFrom(whole, end, folder.path)).toEqual({ files: 1, bytes: 5, shrunk: [] });
  expect(await readFile(join(folder.path, "a"), "utf8")).toBe("hello");
});

test.each([
  [
    "tar fails",
    whole,
    { status: 2, stderr: "tar: first\ntar: ./b: Cannot open\n" },
    "tar: ./b: Cannot open.",
  ],
  [
    "the shell says a whole sentence",
    whole,
    { status: 255, stderr: "There is no folder.\n" },
    "There is no folder.",
  ],
  ["tar is killed", whole.subarray(0, 100), { status: 137 }, "the archive is incomplete."],
  ["nothing is said", whole, { status: 2 }, "tar exited with 2."],
])("if %s, nothing is kept, and the reason is shown", async (_, archive, end, reason) => {
  await using folder = await scratchFolder();
  const failure = await failureOf(fetchFrom(archive, end, folder.path));
  expect(failure).toMatchObject({
    id: "transfer-failed",
    facts: { node: "master_0", remote: "/a" },
  });
  expect(failure.message).toBe(`Cannot fetch /a from master_0: ${reason}`);
  expect(failure.hint).toStartWith("Nothing was written.");
  expect(await readdir(folder.path)).toEqual([]);
});

test("a lost connection is the failure itself", async () => {
  await using folder = await scratchFolder();
  const lost = new ClusterError("connection-failed", "The connection was lost.", {
    transient: true,
  });
  const connection = { run: async () => Promise.reject(lost) } as unknown as Connection;
  const request = { remote: "/a", local: join(folder.path, "a") };
  expect(
    await failureOf(fetchFile(request, { connection, node: "master_0", settings: [] }, signal)),
  ).toBe(lost);
});

test("a node that sends nothing for a minute is given up, however long it sent before", async () => {
  await using folder = await scratchFolder();
  jest.useFakeTimers();
  try {
    const slowly = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
      for (let at = 0; at < whole.length; at += 512) {
        jest.advanceTimersByTime(59_000);
        yield whole.subarray(at, at + 512);
      }
    };
    const seen: boolean[] = [];
    const run = async ({ receive }: RemoteCommand, limit: AbortSignal): Promise<never> => {
      await receive?.(slowly());
      seen.push(limit.aborted);
      jest.advanceTimersByTime(60_000);
      seen.push(limit.aborted);
      throw limit.reason;
    };
    const source = { connection: { run } as unknown as Connection, node: "master_0", settings: [] };
    const { message } = await failureOf(
      fetchFile({ remote: "/a", local: join(folder.path, "a") }, source, signal),
    );
    expect(message).toBe("Cannot fetch /a from master_0: no data arrived for 60 s.");
    expect(seen).toEqual([false, true]);
  } finally {
    jest.useRealTimers();
  }
});

import { appendFile, mkdir, readdir, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { UploadTarget } from "../../../../src/ssh/connection/connection.ts";
import { factsOfFile } from "../../../support/facts-of-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  type OpensshServer,
  opensshLack,
  startOpensshServer,
} from "../../../support/openssh-server.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { connectTo, signal } from "../../../support/ssh-options.ts";
import { until } from "../../../support/until.ts";

const megabyte = 1024 * 1024;

describe.skipIf(opensshLack !== undefined)(
  `uploads to a real sshd (${opensshLack ?? "here"})`,
  () => {
    const hold: { server?: OpensshServer } = {};
    beforeAll(async () => {
      hold.server = await startOpensshServer([]);
    });
    afterAll(() => hold.server![Symbol.asyncDispose]());
    const connect = () => connectTo(hold.server!, {});

    test("20 MB arrive unchanged, with progress", async () => {
      await using connection = await connect();
      await using folder = await scratchFolder();
      const bytes = crypto.getRandomValues(new Uint8Array(65_536));
      const content = Buffer.concat(Array.from({ length: 320 }, () => bytes));
      const file = join(folder.path, "source");
      const path = join(folder.path, "it's the target");
      await writeFile(file, content);
      const told: number[] = [];
      const onProgress = (sent: number, total: number): void => void told.push(sent / total);
      await connection.upload(
        { file: await factsOfFile(file) },
        { path, mode: 0o640, onProgress },
        signal,
      );
      expect(content.equals(await Bun.file(path).bytes())).toBe(true);
      expect((await stat(path)).mode & 0o7777).toBe(0o640);
      expect(told.at(-1)).toBe(1);
      expect(told.toSorted((a, b) => a - b)).toEqual(told);
      expect(await readdir(folder.path)).toHaveLength(2);
    });

    test.each(["", "naïve\n", "no newline"])(
      "the text %j arrives in a new folder",
      async (text) => {
        await using connection = await connect();
        await using folder = await scratchFolder();
        const path = join(folder.path, "a", "b c", "target");
        await connection.upload({ text }, { path, mode: 0o600, sudo: true }, signal);
        expect(await Bun.file(path).text()).toBe(text);
        expect((await stat(join(folder.path, "a", "b c"))).mode & 0o777).toBe(0o755);
      },
    );

    test("an existing file is replaced", async () => {
      await using connection = await connect();
      await using folder = await scratchFolder();
      const path = join(folder.path, "target");
      await writeFile(path, "old", { mode: 0o444 });
      await connection.upload({ text: "new" }, { path, mode: 0o755 }, signal);
      expect(await Bun.file(path).text()).toBe("new");
      expect((await stat(path)).mode & 0o777).toBe(0o755);
    });

    test("a folder at the target is kept, and the node's message is reported", async () => {
      await using connection = await connect();
      await using folder = await scratchFolder();
      await mkdir(join(folder.path, "target", "inside"), { recursive: true });
      const target = { path: join(folder.path, "target"), mode: 0o600 };
      const error = await failureOf(connection.upload({ text: "new" }, target, signal));
      expect(error.id).toBe("transfer-failed");
      expect(error.message).toMatch(
        /Cannot send \S*target to master_0: mv: .*(directory|Directory)/,
      );
      expect(await readdir(folder.path)).toEqual(["target"]);
    });

    test("a full disk on the node is reported, and nothing is left there", async () => {
      await using connection = await connect();
      await using disk = await smallDisk(2 * megabyte);
      const text = "x".repeat(8 * megabyte);
      const target = { path: join(disk.path, "target"), mode: 0o600 };
      const error = await failureOf(connection.upload({ text }, target, signal));
      expect(error.id).toBe("transfer-failed");
      expect(error.message).toContain("No space left on device");
      expect(await readdir(disk.path)).toEqual([]);
    });

    test.each([
      ["shrinks", (file: string) => truncate(file, 3 * megabyte)],
      ["grows", (file: string) => appendFile(file, "more")],
    ])("a file that %s fails and leaves nothing", async (_name, change) => {
      await using connection = await connect();
      await using folder = await scratchFolder();
      const file = join(folder.path, "source");
      await writeFile(file, new Uint8Array(24 * megabyte));
      const changes: Promise<void>[] = [];
      const onProgress = (): void => void (changes.length === 0 && changes.push(change(file)));
      const target: UploadTarget = { path: join(folder.path, "target"), mode: 0o600, onProgress };
      const error = await failureOf(
        connection.upload({ file: await factsOfFile(file) }, target, signal),
      );
      expect(error.id).toBe("transfer-failed");
      expect(error.message).toContain("it was changed or replaced");
      await Promise.all(changes);
      await until("the node's clean-up", async () =>
        (await readdir(folder.path)).every((name) => name === "source"),
      );
    });

    test("an aborted upload leaves nothing", async () => {
      await using connection = await connect();
      await using folder = await scratchFolder();
      const file = join(folder.path, "source");
      await writeFile(file, new Uint8Array(24 * megabyte));
      const abort = new AbortController();
      const onProgress = (): void => abort.abort(new Error("changed my mind"));
      const target = { path: join(folder.path, "target"), mode: 0o600, onProgress };
      expect(
        (
          await failureOf(
            connection.upload({ file: await factsOfFile(file) }, target, abort.signal),
          )
        ).message,
      ).toBe("changed my mind");
      await until(
        "the node's clean-up",
        async () => (await readdir(folder.path)).join() === "source",
      );
    });
  },
);

async function smallDisk(bytes: number): Promise<AsyncDisposable & { readonly path: string }> {
  const folder = await scratchFolder();
  await Bun.$`mount -t tmpfs -o size=${bytes} tmpfs ${folder.path}`.quiet();
  return {
    path: folder.path,
    [Symbol.asyncDispose]: async () => {
      await Bun.$`umount ${folder.path}`.quiet();
      await folder[Symbol.asyncDispose]();
    },
  };
}

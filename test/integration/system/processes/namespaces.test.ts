/** Containers may share a state folder, and even the name of their host: each has its own numbers of processes. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { acquireIdleLock } from "../../../../src/backend/shared/lock-machines.ts";
import {
  beginCreation,
  creationDirectory,
  isAbandonedCreation,
  isCreationUnderWay,
} from "../../../../src/store/creation-folder.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const inNamespace = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"];
const canUnshare =
  Bun.which("unshare") !== null && Bun.spawnSync([...inNamespace, "true"]).exitCode === 0;
const ids = ["shared", "0123456789abcdef"] as const;

/** Starts the program in a namespace of its own. */
function start(folder: string) {
  const words = [join(folder, "lock"), creationDirectory(folder, ...ids), ...ids];
  const program = [process.execPath, join(import.meta.dir, "namespace-program.ts"), ...words];
  return Bun.spawn([...inNamespace, ...program], { stdin: "pipe", stdout: "pipe" });
}

const nextText = async (reader: {
  read(): Promise<{ value?: Uint8Array | undefined }>;
}): Promise<string> => new TextDecoder().decode((await reader.read()).value);

test.skipIf(!canUnshare)(
  "a process in another namespace keeps its lock and its creation while it lives",
  async () => {
    await using folder = await scratchFolder();
    await using other = start(folder.path);
    expect(await nextText(other.stdout.getReader())).toBe("holds\n");
    expect(
      await acquireIdleLock(join(folder.path, "lock"), systemClock, neverAborted),
    ).toBeUndefined();
    const directory = creationDirectory(folder.path, ...ids);
    expect([await isAbandonedCreation(directory), await isCreationUnderWay(directory)]).toEqual([
      false,
      true,
    ]);
    await other.stdin.end();
    await other.exited;
    await using lock = await acquireIdleLock(join(folder.path, "lock"), systemClock, neverAborted);
    expect(lock).toBeDefined();
  },
);

test.skipIf(!canUnshare)(
  "a process in another namespace waits for a lock of this one, and learns its path",
  async () => {
    await using folder = await scratchFolder();
    const path = join(folder.path, "lock");
    await using lock = await acquireIdleLock(path, systemClock, neverAborted);
    await beginCreation(creationDirectory(folder.path, ...ids), ...ids);
    await using other = start(folder.path);
    const reader = other.stdout.getReader();
    expect(await nextText(reader)).toEndWith(
      `in another container. If it has ended, remove ${path}.\n`,
    );
    await lock?.[Symbol.asyncDispose]();
    expect(await nextText(reader)).toBe("holds\n");
    await other.stdin.end();
    await other.exited;
  },
);

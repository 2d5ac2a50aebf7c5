import { expect, test } from "bun:test";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { openEngine } from "../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import { readHostKey } from "../../../../src/backend/container/container-power.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

const key = Buffer.alloc(51, 7).toString("base64");

/** Reads the key from an engine that copies these characters, and then as many zeros. */
async function readFrom(text: string, zeros: number): Promise<Buffer | undefined> {
  await using folder = await scratchFolder();
  const program = join(folder.path, "docker");
  await writeFile(program, `#!/bin/sh\nprintf '${text}'\nhead -c ${zeros} /dev/zero\n`);
  await chmod(program, 0o755);
  const environment = { PATH: `${folder.path}:/usr/bin:/bin` };
  const engine = openEngine(engineKinds.docker, "", { environment, progress: silentProgress });
  return await readHostKey(engine, { id: "0123456789ab" }, neverAborted);
}

test("a container's host key is read from the archive that the engine makes of its file", async () => {
  expect(await readFrom(`ssh_host_ed25519_key.pub ssh-ed25519 ${key} root@node`, 9_000)).toEqual(
    Buffer.from(key, "base64"),
  );
});

test("of a file that a node has made longer than any key, only the end is kept", async () => {
  expect(await readFrom(`ssh-ed25519 ${key} root@node`, 1_000_000)).toBeUndefined();
});

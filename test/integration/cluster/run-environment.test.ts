/** `run` on a node that lacks the folder of the platform's tests. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { layouts } from "../../../src/platform/layouts/find-layout.ts";
import { createKnownHosts } from "../../../src/ssh/known-hosts.ts";
import { creationFiles } from "../../../src/system/files/creation-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { wireKey } from "../../support/ssh-options.ts";

const installed = layouts.map((layout) => layout.testsFolder).find((folder) => existsSync(folder));
const lack = opensshLack ?? (installed === undefined ? undefined : `${installed} exists here`);

async function run(hasTestEnvironment: boolean) {
  await using scratch = await scratchFolder();
  await using server = await startOpensshServer([]);
  const directory = join(scratch.path, "state");
  await mkdir(directory);
  const files = creationFiles(directory);
  await writeFile(files.privateKey, server.loginKey.privateKey, { mode: 0o600 });
  await createKnownHosts(files.knownHosts).pin("127.0.0.1", server.port, wireKey(server.firstHostKey.publicKey));
  const program = join(import.meta.dir, "run-on-node-program.ts");
  const words = ['echo "hosts: $MASTER_HOSTS"'];
  const request = JSON.stringify({ directory, port: server.port, words, fetches: [], hasTestEnvironment });
  const child = Bun.spawn([process.execPath, program, request], { stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text()]);
  return { status: await child.exited, stdout, stderr };
}

describe.skipIf(lack !== undefined)(`a node without the platform's tests (${lack ?? "here"})`, () => {
  test("runs no command in the test environment, and says what to do", async () => {
    expect(await run(true)).toEqual({
      status: 255,
      stdout: "",
      stderr: `The folder ${layouts[0].testsFolder} does not exist on this node. Install the platform first.\n`,
    });
  }, 30_000);

  test("runs other commands without the environment's variables", async () => {
    expect(await run(false)).toEqual({ status: 0, stdout: "hosts: \n", stderr: "" });
  }, 30_000);
});

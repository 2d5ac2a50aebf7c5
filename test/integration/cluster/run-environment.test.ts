/** `run` on a node that lacks the folder of the platform's tests. */
import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { layouts } from "../../../src/platform/layouts/find-layout.ts";
import { makeFolderFor } from "../../support/openssh-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { runOnNode } from "./run-on-node.ts";

const installed = layouts
  .map((layout) => layout.testsFolders[0])
  .find((folder) => existsSync(folder));
const lack = opensshLack ?? (installed === undefined ? undefined : `${installed} exists here`);

/** Runs a command, and then fetches these paths from the node. */
async function run(hasTestEnvironment: boolean, remotes: readonly string[] = []) {
  await using scratch = await scratchFolder();
  await using server = await startOpensshServer([]);
  const directory = join(scratch.path, "state");
  await makeFolderFor(server, directory);
  const words = ['echo "hosts: $MASTER_HOSTS"'];
  const fetches = remotes.map((remote, index) => ({
    remote,
    local: join(scratch.path, "fetched", String(index)),
  }));
  const request = { directory, port: server.port, words, fetches, hasTestEnvironment };
  const end = await runOnNode(request);
  const fetched = await readdir(join(scratch.path, "fetched")).catch(() => []);
  return { ...end, fetched };
}

describe.skipIf(lack !== undefined)(
  `a node without the platform's tests (${lack ?? "here"})`,
  () => {
    test("runs no command in the test environment, and says what to do", async () => {
      expect(await run(true)).toEqual({
        status: 255,
        stdout: "",
        stderr: `The folder ${layouts[0].testsFolders[0]} does not exist on this node. Install the platform first.\n`,
        fetched: [],
      });
    });

    test("can still be asked for files by absolute paths", async () => {
      const { status, stderr, fetched } = await run(true, ["/etc/hostname", "report.xml"]);
      expect({ status, fetched }).toEqual({ status: 255, fetched: ["0"] });
      const reason = `The folder ${layouts[0].testsFolders[0]} does not exist on this node.`;
      expect(stderr).toEndWith(`Warning: Cannot fetch report.xml from master_0: ${reason}\n`);
    });

    test("runs other commands without the environment's variables", async () => {
      expect(await run(false)).toEqual({ status: 0, stdout: "hosts: \n", stderr: "", fetched: [] });
    });
  },
);

/**
 * Scripts with which nodes are asked, where no file can be written. Before version 5.1, bash writes
 * each here-document to a file.
 */
import { expect, test } from "bun:test";
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { secretsScript } from "../../../src/platform/cluster-secrets.ts";
import { installPaths } from "../../../src/platform/install-paths.ts";
import { layouts } from "../../../src/platform/layouts/find-layout.ts";
import { logsScript, parseFrames } from "../../../src/platform/node-logs.ts";
import { nodeScript, parseNodeReport } from "../../../src/platform/readiness/node-question.ts";
import installFile from "../../../src/platform/folder/install.sh" with { type: "text" };
import { intoFolder } from "../../support/install-machine.ts";
import { serveOnLoopback } from "../../support/loopback-server.ts";
import { runShell } from "../../support/prepare-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** A node of the shells of CentOS 7, on which files can be read but none can be written. */
async function startNode(files: Readonly<Record<string, string>>) {
  const scratch = await scratchFolder();
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(scratch.path, path)), { recursive: true });
    await writeFile(join(scratch.path, path), text);
    await chmod(join(scratch.path, path), 0o755);
  }
  const ask = async (script: string): Promise<string> => {
    const limited = `trap '' XFSZ; ulimit -f 0; ${intoFolder(script, scratch.path)}`;
    const line = `BASH_COMPAT=5.0 bash --posix -c "$(cat)" | cat`;
    const { stdout } = await runShell(["bash", "-c", line], limited, undefined);
    return stdout;
  };
  return { ask, [Symbol.asyncDispose]: scratch[Symbol.asyncDispose] };
}

test("the secrets to mask are read", async () => {
  const [file = ""] = layouts.flatMap(({ secretFiles }) => secretFiles);
  await using node = await startNode({
    [`${installPaths.genconf}/config.yaml`.slice(1)]: "superuser_password: hunter2\n",
    [file.slice(1)]: "a key\n",
  });
  const found = parseFrames(await node.ask(secretsScript), ["configuration", "secret-0"]);
  expect([...found.values()]).toEqual(["superuser_password: hunter2\n", "a key\n"]);
});

test("the node's own check runs", async () => {
  await using node = await startNode({
    "var/lib/cluster-e2e/layout": "folder\n",
    "var/lib/cluster-e2e/install.status": "exit 0\n",
    "opt/cluster-platform/platform.json": "{}\n",
    "opt/cluster-platform/check-node": "#!/bin/sh\necho 'no space'\nexit 3\n",
  });
  const report = parseNodeReport(await node.ask(nodeScript));
  expect(report).toMatchObject({ status: "exit 0", checkStatus: 3, checkOutput: "no space" });
});

test("the logs of the platform's units are sent", async () => {
  const journal = 'case "$*" in *"--unit app"*) echo "a line of app" ;; esac\n';
  await using node = await startNode({
    "bin/journalctl": `#!/bin/sh\n${journal}`,
    "opt/cluster-platform/log-units": "app\n",
  });
  const script = `PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n${logsScript({})}`;
  const found = parseFrames(await node.ask(script), ["platform-units.txt"]);
  expect(found.get("platform-units.txt")).toBe("a line of app\n");
});

test.skipIf(process.platform !== "linux")(
  "a platform's files that don't fit are an error at once, not the server's",
  async () => {
    await using folder = await scratchFolder();
    await symlink("/dev/full", join(folder.path, "platform.tar.gz"));
    const requests: string[] = [];
    using server = serveOnLoopback(({ url }) => {
      requests.push(url);
      return new Response("x".repeat(100_000));
    });
    const [functions = ""] = installFile.split("\n# detect DETECTOR");
    const lines = `cd "$1"; fetched=/fetched BOOTSTRAP_URL=http://127.0.0.1:${server.port}; sleep() { exit 7; }
fetch platform.tar.gz || fail 'not provided'`;
    const argv = ["bash", "-c", `${functions}\n${lines}`, "bash", folder.path];
    const { status, stderr } = await runShell(argv, "", undefined);
    expect([status, requests.length]).toEqual([1, 1]);
    expect(stderr).toEndWith(
      "Cannot install the platform: platform.tar.gz cannot be written to /fetched.\n",
    );
  },
);

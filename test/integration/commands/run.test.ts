/** `run` with a real sshd, on which no platform is installed. */
import { describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { closeMasterConnections } from "../../../src/ssh/session/master-connection.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { wireKey } from "../../support/ssh-options.ts";

setDefaultTimeout(30_000);

async function openNode() {
  const [server, scratch] = await Promise.all([startOpensshServer([]), scratchFolder()]);
  const creationId = "0123456789abcdef";
  const directory = join(scratch.path, "cluster-e2e", "container", `example-${creationId}`);
  const files = creationFiles(directory);
  await mkdir(directory, { recursive: true });
  await createKnownHosts(files.knownHosts).pin(
    "127.0.0.1",
    server.port,
    wireKey(server.firstHostKey.publicKey),
  );
  await writeFile(files.privateKey, server.loginKey.privateKey, { mode: 0o600 });
  const master = {
    id: "one",
    role: "master",
    index: 0,
    state: "running",
    ssh: { host: "127.0.0.1", port: server.port, user: "root" },
  };
  const stopped = { ...master, id: "two", role: "agent", state: "stopped" };
  const cluster = {
    ...exampleCluster([master, stopped] as NodeRecord[], "oss"),
    creationId,
    directory,
    backend: "container" as const,
  };
  const environment = {
    PATH: process.env["PATH"] ?? "",
    HOME: scratch.path,
    XDG_STATE_HOME: scratch.path,
  };
  return {
    folder: scratch.path,
    run: async (words: string) =>
      runCommandLine(`run -c example ${words}`, {
        kind: containerKind,
        backend: { name: "container", find: async () => cluster },
        nowMs: 0,
        cwd: scratch.path,
        environment,
      }),
    [Symbol.asyncDispose]: async () => {
      await closeMasterConnections(directory, environment);
      await server[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

describe.skipIf(opensshLack !== undefined)(`run (${opensshLack ?? "here"})`, () => {
  test("passes variables to the command, and ends with its status", async () => {
    await using node = await openNode();
    await writeFile(join(node.folder, "own.env"), "A=from the file\nB=from the file\n");
    await writeFile(join(node.folder, "show"), '#!/bin/sh\necho "$A, $B" >"$1"\nexit 7\n', {
      mode: 0o755,
    });
    const [program, shown] = [join(node.folder, "show"), join(node.folder, "shown")];
    const { status, failureExitCode } = await node.run(
      `--no-test-env --env-file own.env --env B=given ${program} ${shown}`,
    );
    expect(await readFile(shown, "utf8")).toBe("from the file, given\n");
    // Only a failure of ours ends with 255.
    expect({ status, failureExitCode }).toEqual({ status: 7, failureExitCode: undefined });
  });

  test("on several nodes notes each failure, or has them in its JSON, and ends with the highest status", async () => {
    await using node = await openNode();
    const { status, told } = await node.run("--no-test-env --node all false");
    expect([status, told[0]]).toEqual([255, "master_0: exited with status 1"]);
    expect(told[1]).toStartWith("agent_0: ");
    expect(told[1]).not.toContain("255");
    const json = await node.run("--no-test-env --node all --output json false");
    expect(json).toMatchObject({
      status: 255,
      told: [],
      data: { nodes: [{ status: 1 }, { error: { id: "node-stopped" } }] },
    });
    expect(json.data).not.toHaveProperty("nodes.0.error");
    expect((await node.run("--no-test-env --node master_0 --node agent_0 true")).told).toEqual([
      told[1]!,
    ]);
    expect(await node.run("--no-test-env --node masters true")).toMatchObject({
      status: 0,
      told: [],
    });
  });

  test("needs the platform for the tests' environment", async () => {
    await using node = await openNode();
    expect((await node.run("true")).status).not.toBe(0);
    expect(await node.run("--no-test-env true")).toMatchObject({ status: 0 });
  });
});

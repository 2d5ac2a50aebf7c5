import { describe, expect, test } from "bun:test";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { removeCluster } from "../../../src/cluster/destroy-clusters.ts";
import { hasMasterConnection } from "../../../src/ssh/session/master-connection.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../src/store/creation-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { signal, wireKey } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";

describe.skipIf(opensshLack !== undefined)(`removing a cluster (${opensshLack ?? "here"})`, () => {
  test("closes the connection that run keeps before it removes the machines, then removes the key", async () => {
    await using scratch = await scratchFolder();
    await using server = await startOpensshServer([]);
    const directory = join(scratch.path, "demo-0123456789abcdef");
    await mkdir(directory);
    const files = creationFiles(directory);
    await writeFile(files.privateKey, server.loginKey.privateKey, { mode: 0o600 });
    await createKnownHosts(files.knownHosts).pin(
      "127.0.0.1",
      server.port,
      wireKey(server.firstHostKey.publicKey),
    );
    const request = JSON.stringify({ directory, port: server.port, words: ["true"], fetches: [] });
    const program = join(import.meta.dir, "run-on-node-program.ts");
    // Its output is a pipe, which ends with the program although the connection stays.
    const child = Bun.spawn([process.execPath, program, request], {
      stdio: ["ignore", "pipe", "pipe"],
    });
    const output = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    expect([await child.exited, ...output]).toEqual([0, "", ""]);
    await until("a connection is kept", () => hasMasterConnection(directory, process.env));
    const wasKept: boolean[] = [];
    const remove = async (): Promise<void> => {
      wasKept.push(await hasMasterConnection(directory, process.env));
    };
    await removeCluster(
      { remove },
      { id: "demo", creationId: "0123456789abcdef", directory },
      process.env,
      signal,
    );
    expect(wasKept).toEqual([false]);
    expect(await readdir(directory)).not.toContain("id_ed25519");
    expect(await readdir(directory)).toContain("known_hosts");
  });
});

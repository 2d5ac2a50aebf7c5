import { describe, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { removeCluster } from "../../../src/cluster/destroy-clusters.ts";
import { hasMasterConnection } from "../../../src/ssh/session/master-connection.ts";
import { makeFolderFor } from "../../support/openssh-folder.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { signal } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";
import { runOnNode } from "./run-on-node.ts";

describe.skipIf(opensshLack !== undefined)(`removing a cluster (${opensshLack ?? "here"})`, () => {
  test("closes the connection that run keeps before it removes the machines, then removes the key", async () => {
    await using scratch = await scratchFolder();
    await using server = await startOpensshServer([]);
    const directory = join(scratch.path, "demo-0123456789abcdef");
    await makeFolderFor(server, directory);
    // Its output is a pipe, which ends with the program although the connection stays.
    const end = await runOnNode({ directory, port: server.port, words: ["true"] });
    expect(end).toEqual({ status: 0, stdout: "", stderr: "" });
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

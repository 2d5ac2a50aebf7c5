import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { keyMissing, openConnections, sshConfig } from "../../../src/cluster/connections.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import {
  beginCreation,
  creationDirectory,
  endCreation,
  endRemovedCreation,
} from "../../../src/store/creation-folder.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

test.each([
  ["cloud", true],
  ["container", false],
  ["vm", false],
] as const)(
  "if the key of a cluster of the backend %s is missing, the hint names export: %p",
  (backend, isNamed) => {
    const { id, hint = "" } = keyMissing({ ...exampleCluster([], "oss"), backend });
    expect(id).toBe("key-missing");
    expect(hint.includes("export command")).toBe(isNamed);
    expect(hint).toContain("/nowhere/id_ed25519");
  },
);

const node = (index: number, changes: object) =>
  ({
    id: `i-${index}`,
    role: "master",
    index,
    state: "running",
    ssh: { host: `192.0.2.${index}`, port: 22, user: "admin" },
    ...changes,
  }) as NodeRecord;

test("the configuration for ssh has the running nodes that have an address", async () => {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "id_ed25519"), "a key");
  const ssh = { host: "", port: 22, user: "admin" };
  const nodes = [
    node(0, {}),
    node(1, { state: "ended" }),
    node(2, { ssh }),
    node(3, { role: "agent" }),
  ];
  const text = await sshConfig({ ...exampleCluster(nodes, "oss"), directory: folder.path });
  expect(text.match(/^Host .*$/gm)).toEqual([
    "Host master_0 master_0.example master-0.example",
    "Host agent_3 agent_3.example agent-3.example",
  ]);
});

test("without the key there is no configuration for ssh", async () => {
  expect((await failureOf(sshConfig(exampleCluster([node(0, {})], "oss")))).id).toBe("key-missing");
});

test.each([
  [true, "cluster-not-found", 'Cluster "example" was destroyed meanwhile.'],
  [false, "key-missing", "The cluster's SSH key cannot be read"],
] as const)(
  "a key that vanishes while its cluster is used (destroyed: %p) is %s",
  async (isDestroyed, id, text) => {
    await using folder = await scratchFolder();
    const directory = creationDirectory(folder.path, "example", "0123456789abcdef");
    await beginCreation(directory, "example", "0123456789abcdef");
    await endCreation(directory, "finished");
    await using connections = openConnections(directory, {
      clock: systemClock,
      progress: silentProgress,
    });
    if (isDestroyed) await endRemovedCreation(directory);
    const failure = await failureOf(connections.connect(node(0, {}), new AbortController().signal));
    expect(failure.id).toBe(id);
    expect(failure.message).toContain(text);
  },
);

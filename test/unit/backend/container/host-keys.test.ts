import { expect, test } from "bun:test";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Engine, openEngine } from "../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import { pinPorts, readHostKey, readPins } from "../../../../src/backend/container/host-keys.ts";
import type { NodeContainer } from "../../../../src/backend/container/records/read-containers.ts";
import { createKnownHosts } from "../../../../src/ssh/openssh-files.ts";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { silentProgress } from "../../../../src/system/runtime.ts";
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

const keyOf = (number: number): Buffer => {
  const parts = [Buffer.from("ssh-ed25519"), Buffer.alloc(32, number)];
  return Buffer.concat(parts.flatMap((part) => [Buffer.from([0, 0, 0, part.length]), part]));
};

const started = (index: number, changes: Partial<NodeContainer> = {}): NodeContainer => {
  const ports = new Map([[22, 40_000 + index]]);
  return {
    id: String(index),
    role: "agent",
    index,
    reach: "published",
    ports,
    ...changes,
  } as NodeContainer;
};

/** Pins ports of containers whose keys have their number. The keys with these numbers are pinned at other ports. */
async function pinnedAfter(containers: readonly NodeContainer[], pinned: readonly number[]) {
  await using folder = await scratchFolder();
  const directory = join(folder.path, "cluster");
  await mkdir(directory);
  const knownHosts = createKnownHosts(creationFiles(directory).knownHosts);
  for (const number of pinned) await knownHosts.pin("127.0.0.1", 30_000 + number, keyOf(number));
  const asked: string[] = [];
  const ask: Engine["ask"] = async ({ words: [, source = ""] }) => {
    const [id = ""] = source.split(":");
    asked.push(id);
    return `ssh-ed25519 ${keyOf(Number(id)).toString("base64")}`;
  };
  const engine = { kind: engineKinds.docker, ask } as unknown as Engine;
  const pinning = pinPorts(engine, { directory, containers }, neverAborted);
  const failure = await pinning.then(
    () => undefined,
    (error: unknown) => error,
  );
  const numbers = new Map((await readPins(directory)).map(([host, pin]) => [host, pin.at(-1)]));
  return { failure, asked, numbers };
}

test("nodes that are reached at ports are pinned at their new ones, with the keys that they had", async () => {
  const others = [started(2, { reach: "direct" }), started(3, { ports: new Map([[80, 40_003]]) })];
  const { failure, asked, numbers } = await pinnedAfter(
    [started(0), started(1), ...others],
    [0, 1],
  );
  expect([failure, asked]).toEqual([undefined, ["0", "1"]]);
  expect(Object.fromEntries(numbers)).toEqual({
    "[127.0.0.1]:30000": 0,
    "[127.0.0.1]:30001": 1,
    "[127.0.0.1]:40000": 0,
    "[127.0.0.1]:40001": 1,
  });
});

test("a node with a key that was pinned to no node is an error, and is not pinned", async () => {
  const { failure, numbers } = await pinnedAfter([started(4)], [0]);
  expect(failure).toMatchObject({ id: "host-key-changed", facts: { node: "agent_4" } });
  expect([...numbers.keys()]).toEqual(["[127.0.0.1]:30000"]);
});

test("on a machine without pinned keys, no node is asked for its key", async () => {
  expect(await pinnedAfter([started(0)], [])).toMatchObject({ failure: undefined, asked: [] });
});

import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { exportForLibrary } from "../../../src/library/hand-over.ts";
import type { NodeRecord } from "../../../src/model/cluster-record.ts";
import type { OpenCluster } from "../../../src/library/open-cluster.ts";
import { isDiskFull } from "../../../src/system/files/private-file.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { neverAborted } from "../../support/never-aborted.ts";
import { pinnedNode } from "../../support/pinned-node.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** Exports a cluster on a machine whose `age` is this shell script; undefined: it has none. */
async function exportWith(
  age: string | undefined,
  recipients: readonly string[],
  state: NodeRecord["state"] = "running",
): Promise<string> {
  await using scratch = await scratchFolder();
  const bin = join(scratch.path, "bin");
  await mkdir(bin);
  if (age !== undefined) {
    await writeFile(join(bin, "age"), `#!/bin/sh\n${age}\n`);
    await chmod(join(bin, "age"), 0o755);
  }
  await writeFile(join(scratch.path, "id_ed25519"), "the private key");
  const nodes = [await pinnedNode(scratch.path, state)];
  const record = { ...exampleCluster(nodes, "oss"), directory: scratch.path };
  const open = {
    backend: { name: "cloud", cloud: {}, find: async () => record },
    record,
    runtime: { environment: { PATH: bin }, clock: systemClock, progress: silentProgress },
  } as unknown as OpenCluster;
  return await exportForLibrary(open, recipients, neverAborted);
}

// It returns its arguments and the last line of its input.
const lastLineOnly = 'echo "for $*"; while IFS= read -r line; do last=$line; done; echo "$last"';

test("an export without recipients is readable", async () => {
  expect(JSON.parse(await exportWith(undefined, []))).toMatchObject({
    privateKey: "the private key",
  });
});

test("an export for recipients is what age returns", async () => {
  expect(await exportWith(lastLineOnly, ["age1x", "ssh-ed25519 AAAA"])).toBe(
    "for -e -a -r age1x -r ssh-ed25519 AAAA\n}\n",
  );
});

test("a cluster that ends is no file that nobody can import", async () => {
  expect(await failureOf(exportWith(undefined, [], "ending"))).toMatchObject({
    id: "cluster-not-found",
    message: 'Cluster "example" has no running nodes.',
  });
});

test("without age, nothing is exported for recipients", async () => {
  const failure = await failureOf(exportWith(undefined, ["age1x"]));
  expect(failure).toMatchObject({
    id: "machine-not-set-up",
    message: "There is no age on this computer's PATH.",
  });
});

test("a recipient that age refuses is named with age's reason", async () => {
  const age =
    "echo 'age: error: malformed recipient' >&2; echo 'age: report unexpected errors' >&2; exit 1";
  const failure = await failureOf(exportWith(age, ["age1x", "y"]));
  expect(failure).toMatchObject({ id: "bad-usage", hint: expect.stringContaining("age1…") });
  expect(failure.message).toBe(
    'age cannot encrypt for "age1x", "y": age: error: malformed recipient',
  );
});

test("an age that is killed, or says nothing, is not put down to its recipients alone", async () => {
  expect(await failureOf(exportWith("kill -KILL $$", ["age1x"]))).toMatchObject({
    id: "machine-not-set-up",
    message: "age was killed before it had encrypted all.",
  });
  expect(await failureOf(exportWith("exit 3", ["age1x"]))).toMatchObject({
    id: "bad-usage",
    message: 'age cannot encrypt for "age1x": status 3',
  });
});

test("a private key as a recipient is refused, not quoted, and not passed to age", async () => {
  const key = "AGE-SECRET-KEY-1QQQQ";
  const { id, message } = await failureOf(exportWith("cat; exit 1", ["age1x", key]));
  expect([id, message]).toEqual([
    "bad-usage",
    "A recipient is a private key of age. Such a key must stay secret.",
  ]);
});

test.each(["no space left on device", "disk quota exceeded"])(
  "age's words '%s' mean a full disk",
  async (words) => {
    const failure = await failureOf(
      exportWith(`echo 'age: error: write /x/draft: ${words}' >&2; exit 1`, ["age1x"]),
    );
    expect(isDiskFull(failure)).toBe(true);
  },
);

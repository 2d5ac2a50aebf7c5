import type { Backend } from "../../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import { creationFiles } from "../../../../src/store/creation-folder.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster } from "../../../support/install-example.ts";
import { pinnedNode } from "../../../support/pinned-node.ts";
import { runCommandLine } from "../../../support/run-command.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** A cluster whose key is here, and an `age` that ends as the script says. */
async function openCluster(age?: string) {
  const folder = await scratchFolder();
  const directory = join(folder.path, "own");
  await mkdir(directory);
  const cluster = {
    ...exampleCluster([await pinnedNode(directory)], "oss"),
    creationId: "0123456789abcdef",
    directory,
  };
  await writeFile(creationFiles(cluster.directory).privateKey, "the private key\n");
  if (age !== undefined)
    await writeFile(join(folder.path, "age"), `#!/bin/sh\n${age}\n`, { mode: 0o755 });
  const backend = {
    name: "cloud",
    find: async () => cluster,
    cloud: {},
  } as unknown as Backend<unknown>;
  const environment = { PATH: folder.path };
  return {
    folder: folder.path,
    run: async (words: string, setting: { readonly isStdoutTerminal?: boolean } = {}) =>
      runCommandLine(`export -c example${words}`, {
        kind: cloudKind,
        backend,
        nowMs: 0,
        cwd: folder.path,
        environment,
        ...setting,
      }),
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test("without a file, the export is printed", async () => {
  await using cluster = await openCluster();
  expect(JSON.parse((await cluster.run("")).stdout)).toMatchObject({ region: "us-west-2" });
});

test("a key is not shown on a terminal", async () => {
  await using cluster = await openCluster('while read -r line; do echo "<$line>"; done');
  const failure = await failureOf(cluster.run("", { isStdoutTerminal: true }));
  expect(failure).toMatchObject({
    id: "bad-usage",
    message: expect.stringContaining("stdout is a terminal"),
  });
  for (const words of [" --output-file nightly.json", " --recipient age1one"]) {
    expect(await cluster.run(words, { isStdoutTerminal: true })).toMatchObject({ status: 0 });
  }
});

test("a file that is written can be read by its owner alone", async () => {
  await using cluster = await openCluster();
  const path = join(cluster.folder, "nightly.json");
  expect((await cluster.run(" --output-file nightly.json")).stdout).toBe("");
  expect(await readFile(path, "utf8")).toContain("the private key");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

test.each(["own", "nowhere/nightly.json"])("%s is no place for the file", async (path) => {
  await using cluster = await openCluster();
  const failure = await failureOf(cluster.run(` --output-file ${path}`));
  expect(failure).toMatchObject({
    id: "bad-usage",
    hint: expect.stringContaining("existing folder"),
  });
});

test("an export for recipients is what age makes of it", async () => {
  await using cluster = await openCluster(`echo "$*"; while read -r line; do echo "<$line>"; done`);
  const { stdout } = await cluster.run(" --recipient age1one --recipient age1two");
  expect(stdout).toStartWith("-e -a -r age1one -r age1two\n<{>\n");
});

test.each([
  [
    "refuses the recipient",
    "echo 'unknown recipient' >&2; exit 1",
    "bad-usage",
    "unknown recipient",
  ],
  ["is not there", undefined, "machine-not-set-up", "There is no age on this computer's PATH."],
])("if age %s, nothing is exported", async (_, age, id, text) => {
  await using cluster = await openCluster(age);
  const failure = await failureOf(cluster.run(" --recipient age1one --output-file nightly.json"));
  expect(failure.id as string).toBe(id);
  expect(failure.message).toContain(text);
  expect(await Bun.file(join(cluster.folder, "nightly.json")).exists()).toBeFalse();
});

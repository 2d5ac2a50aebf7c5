import { expect, test } from "bun:test";
import { symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { BackendKind } from "../../../../src/backend/contract.ts";
import { cloudKind } from "../../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../../src/backend/vm/vm-kind.ts";
import { generateKeyPair } from "../../../../src/ssh/keys.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { runCommandLine } from "../../../support/run-command.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

/** Runs the command with a backend that can do nothing. */
const once = async (words: string, kind: BackendKind = vmKind, environment: Readonly<Record<string, string>> = {}) =>
  runCommandLine(`once ${words} -- true`, { kind, backend: { name: kind.name }, nowMs: 0, environment });

test.each([
  ["--from a:b --recipient age1", "--recipient: only allowed with --save-on-failure"],
  ["--from a:b --without-base", "--without-base: only allowed with --save-on-failure"],
  ["--from a:b --save-on-failure /tmp/x --junit /tmp/x", "--save-on-failure: --junit names the same file"],
  ["--from a:b --save-on-failure /tmp", "--save-on-failure: it is not a regular file"],
  ["--from a:b --cache /tmp/x", "--cache: cannot be combined with --from"],
  ["--cache /tmp/x --save-on-failure /tmp/x example:etcd", "--cache: another option names the same file"],
  ["--cache /tmp/x --junit /tmp/x example:etcd", "--cache: another option names the same file"],
  ["--shards 2 example:etcd", "--shards: requires --from"],
  ["--from a:b --shards 0", '--shards: "0" is not a whole number from 1 to 32'],
  [`--from a:b --shards 9 -c ${"a".repeat(62)}`, `--shards: "${"a".repeat(62)}-9" is not a cluster id`],
])("%s is refused", async (words, problem) => {
  expect((await failureOf(once(words))).message).toContain(problem);
});

test("a cache never contains the user's own key", async () => {
  await using folder = await scratchFolder();
  const key = join(folder.path, "key");
  await writeFile(key, generateKeyPair("own").privateKey, { mode: 0o600 });
  const failure = await failureOf(once(`--cache /tmp/x --ssh-key ${key} example:etcd`));
  expect(failure.message).toContain("--cache: the file would contain the key");
});

test("a cache that would lack a folder of this computer is refused", async () => {
  const failure = await failureOf(once("--cache /tmp/x --custom-volume /tmp:/data example:etcd", containerKind));
  expect(failure.message).toContain("--cache: cannot be combined with --custom-volume");
});

test("only backends whose clusters become files save them after a failure", async () => {
  const failure = await failureOf(once("--save-on-failure /tmp/x example:etcd", cloudKind));
  expect(failure.message).toContain("--save-on-failure");
});

test("a shard whose files could not be written is refused", async () => {
  await using folder = await scratchFolder();
  await Bun.write(join(folder.path, "shard_2"), "");
  const failure = await failureOf(once(`--from a:b --shards 2 --fetch /remote:${folder.path}/local`));
  expect(failure.message).toContain(`--fetch: ${folder.path}/shard_2 is not a folder`);
});

test("only backends whose clusters are copied have shards", async () => {
  const failure = await failureOf(once("--shards 2 example:etcd", cloudKind));
  expect(failure.message).toContain("--shards");
});

test("that age is missing is found out before anything is created", async () => {
  await using folder = await scratchFolder();
  await symlink(process.execPath, join(folder.path, "ssh"));
  const words = "--from a:b --save-on-failure /tmp/x --recipient age1";
  const failure = await failureOf(once(words, vmKind, { PATH: folder.path }));
  expect(failure).toMatchObject({ id: "machine-not-set-up", message: expect.stringContaining("no age") });
});

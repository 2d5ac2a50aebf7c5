import { expect, test } from "bun:test";
import { chmod, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts, renderSshConfig } from "../../../src/ssh/openssh-files.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { wireKey } from "../../support/ssh-options.ts";
import { failureOf } from "../../support/failure-of.ts";

const newKey = (): Buffer => wireKey(generateKeyPair("x").publicKey);

test("a pinned key is expected, also by later processes, and OpenSSH finds it", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "known hosts");
  const [one, two] = [newKey(), newKey()];
  const knownHosts = createKnownHosts(path);
  expect(await knownHosts.expected("203.0.113.5", 22)).toBeUndefined();
  await knownHosts.pin("203.0.113.5", 22, one);
  await knownHosts.pin("203.0.113.5", 2222, two);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  for (const reader of [knownHosts, createKnownHosts(path)]) {
    expect(await reader.expected("203.0.113.5", 22)).toEqual(one);
    expect(await reader.expected("203.0.113.5", 2222)).toEqual(two);
    expect(await reader.expected("203.0.113.6", 22)).toBeUndefined();
  }
  expect(await Bun.$`ssh-keygen -F [203.0.113.5]:2222 -f ${path}`.text()).toContain(
    two.toString("base64"),
  );
  expect(await Bun.$`ssh-keygen -F 203.0.113.5 -f ${path}`.text()).toContain(
    one.toString("base64"),
  );
});

test("a later pin replaces the earlier one, and only that", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "known_hosts");
  await createKnownHosts(path).pin("a", 22, newKey());
  await createKnownHosts(path).pin("b", 22, newKey());
  const key = newKey();
  await createKnownHosts(path).pin("a", 22, key);
  expect(await createKnownHosts(path).expected("a", 22)).toEqual(key);
  expect((await Bun.file(path).text()).trim().split("\n")).toHaveLength(2);
});

test("after three hundred concurrent pins, all are in the file", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "known_hosts");
  const knownHosts = createKnownHosts(path);
  const hosts = Array.from(
    { length: 300 },
    (_, index) => `10.0.${Math.floor(index / 250)}.${index % 250}`,
  );
  await Promise.all(
    hosts.map(async (host) => {
      const key = newKey();
      await knownHosts.pin(host, 22, key);
      expect(await Bun.file(path).text()).toContain(
        `${host} ssh-ed25519 ${key.toString("base64")}\n`,
      );
    }),
  );
  expect((await Bun.file(path).text()).trim().split("\n")).toHaveLength(300);
  expect(await readdir(folder.path)).toEqual(["known_hosts"]);
});

test("lines of other programs are ignored", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "known_hosts");
  const key = newKey().toString("base64");
  await writeFile(
    path,
    `# comment\n\na ssh-rsa AAAA\nb ssh-ed25519 ????\nc ssh-ed25519 ${key} remark\nd ssh-ed25519 AAAAB3NzaC1yc2E=\n`,
  );
  const knownHosts = createKnownHosts(path);
  expect((await knownHosts.expected("c", 22))?.toString("base64")).toBe(key);
  for (const host of ["a", "b", "d", "#"])
    expect(await knownHosts.expected(host, 22)).toBeUndefined();
});

test("a folder that isn't writable is reported, and a later pin succeeds", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "missing", "known_hosts");
  const knownHosts = createKnownHosts(path);
  expect(await failureOf(knownHosts.pin("a", 22, newKey()))).toMatchObject({
    id: "machine-not-set-up",
  });
  await Bun.$`mkdir ${join(folder.path, "missing")}`;
  await chmod(join(folder.path, "missing"), 0o700);
  await knownHosts.pin("b", 22, newKey());
  expect((await Bun.file(path).text()).trim().split("\n")).toHaveLength(2);
});

test("OpenSSH interprets the configuration as intended", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "config");
  const nodes = [0, 1].map((index) => ({
    id: `i-${index}`,
    role: "agent",
    index,
    ssh: { host: `203.0.113.${index}`, port: 22 + index, user: "admin" },
  }));
  await writeFile(
    path,
    renderSshConfig(nodes, {
      identityFile: "/50% of it/key",
      knownHostsFile: "/50% of it/known hosts",
    }),
  );
  const output = await Bun.$`ssh -G -F ${path} agent_1`.text();
  const lines = output.split("\n");
  const expected = [
    "hostname 203.0.113.1",
    "port 23",
    "user admin",
    "identityfile /50%% of it/key",
    "userknownhostsfile /50% of it/known hosts",
    "globalknownhostsfile /dev/null",
    "stricthostkeychecking true",
    "identitiesonly yes",
    "identityagent none",
    "preferredauthentications publickey",
    "checkhostip no",
    "updatehostkeys false",
    "hostkeyalgorithms ssh-ed25519",
    "loglevel ERROR",
  ];
  expect(expected.filter((line) => !lines.includes(line))).toEqual([]);
  // A node that doesn't answer is given up, and the slow key exchange isn't offered.
  for (const limit of [
    /^connecttimeout [1-9]/m,
    /^serveraliveinterval [1-9]/m,
    /^kexalgorithms (?!.*sntrup)/m,
  ])
    expect(output).toMatch(limit);
});

test("a jump host that a user's configuration has for all hosts is none for a node", async () => {
  await using folder = await scratchFolder();
  const config = join(folder.path, "config");
  const files = { identityFile: "/key", knownHostsFile: "/hosts" };
  const ssh = { host: "127.0.0.1", port: 4022, user: "core" };
  const block = renderSshConfig([{ id: "i", role: "master", index: 0, ssh }], files);
  for (const own of ["ProxyJump bastion", "ProxyCommand nc bastion %h %p"]) {
    await writeFile(config, `${block}\nHost *\n  ${own}\n`);
    const settings = await Bun.$`ssh -G -F ${config} master_0`.text();
    expect(settings).toContain("hostname 127.0.0.1\n");
    expect(settings).not.toContain("bastion");
  }
});

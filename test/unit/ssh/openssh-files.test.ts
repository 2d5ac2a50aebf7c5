import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { engineKinds } from "../../../src/backend/container/engine/engine-kinds.ts";
import { passageThrough } from "../../../src/backend/container/engine/passage.ts";
import { sshEnvironment } from "../../../src/ssh/ssh-environment.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import {
  createKnownHosts,
  parseKnownHosts,
  renderSshConfig,
} from "../../../src/ssh/openssh-files.ts";
import { failureOf } from "../../support/failure-of.ts";
import { hostileTexts } from "../../support/hostile-text.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const key = generateKeyPair("").publicKey;

test("hosts are read with and without a port", () => {
  const names = parseKnownHosts(`192.0.2.1 ${key}\n[127.0.0.1]:4022 ${key}\n`).map(
    ([name]) => name,
  );
  expect(names).toEqual(["192.0.2.1", "[127.0.0.1]:4022"]);
});

test("no line becomes a pattern, a mark or a list, or anything that would be another line when it is written again", () => {
  for (const text of [
    "@cert-authority",
    "*",
    "!192.0.2.1",
    "a,b",
    "|1|x|y",
    ...hostileTexts(41, 5000),
  ]) {
    for (const [name, found] of [
      ...parseKnownHosts(`${text} ${key}\n`),
      ...parseKnownHosts(`192.0.2.1 ${text}\n`),
    ]) {
      expect(name).toMatch(/^[A-Za-z0-9.:[\]-]+$/);
      expect(found.toString("base64")).toMatch(/^[A-Za-z0-9+/]+=*$/);
    }
  }
});

test("host keys that can't be read are a failure, and missing ones are none", async () => {
  await using folder = await scratchFolder();
  expect(
    await createKnownHosts(join(folder.path, "none")).expected("192.0.2.1", 22),
  ).toBeUndefined();
  const failure = await failureOf(createKnownHosts(folder.path).expected("192.0.2.1", 22));
  expect(failure.message).toContain("EISDIR");
});

test("keys are pinned under the names that OpenSSH looks up, beside those that other processes have pinned", async () => {
  await using folder = await scratchFolder();
  const path = join(folder.path, "known_hosts");
  const lineOf = (host: string, line: string): string => `${host} ${line.trim()}\n`;
  const [own, other] = [generateKeyPair("").publicKey, generateKeyPair("").publicKey];
  const wire = (line: string): Buffer => Buffer.from(line.split(" ")[1]!, "base64");
  await Bun.write(path, `${lineOf("192.0.2.9", key)}${lineOf("192.0.2.1", other)}  # a comment\n`);
  const [one, two] = [createKnownHosts(path), createKnownHosts(path)];
  await one.pin("192.0.2.1", 22, wire(own));
  expect(await Bun.file(path).text()).toBe(lineOf("192.0.2.1", own) + lineOf("192.0.2.9", key));
  await two.pin("127.0.0.1", 4022, wire(other));
  expect(await Bun.file(path).text()).toContain(lineOf("[127.0.0.1]:4022", other));
  expect(await one.expected("127.0.0.1", 4022)).toEqual(wire(other));
  expect(await two.expected("192.0.2.1", 22)).toEqual(wire(own));
  expect(await one.expected("127.0.0.1", 22)).toBeUndefined();
});

const files = { identityFile: "/state/id_ed25519", knownHostsFile: "/state/known_hosts" };
const node = {
  id: "i-0",
  role: "master",
  index: 0,
  ssh: { host: "192.0.2.1", port: 22, user: "admin" },
};

const refusal = async (change: object, changedFiles: object = {}) =>
  failureOf(
    (async () => renderSshConfig([{ ...node, ...change }], { ...files, ...changedFiles }))(),
  );

test("a value with white space or a control character is refused, and shown so that it can be printed", async () => {
  const error = await refusal({ ssh: { ...node.ssh, user: "admin\n  ProxyCommand id" } });
  expect([error.id, error.message]).toEqual([
    "connection-failed",
    String.raw`Cannot pass the user "admin\n  ProxyCommand id" to ssh.`,
  ]);
  expect((await refusal({ ssh: { ...node.ssh, host: "192.0.2.1 x" } })).id).toBe(
    "connection-failed",
  );
  expect((await refusal({ role: "master x" })).id).toBe("connection-failed");
  expect((await refusal({}, { identityFile: "/state/a\rb" })).id).toBe("machine-not-set-up");
});

test("no value becomes another word or line of the configuration", () => {
  const lines = renderSshConfig([node], files).split("\n").length;
  for (const text of hostileTexts(11, 5000)) {
    for (const change of [
      { ssh: { ...node.ssh, user: text } },
      { ssh: { ...node.ssh, host: text } },
      { role: text },
    ]) {
      const rendered = attempt(() => renderSshConfig([{ ...node, ...change }], files));
      if (rendered === undefined || rendered === "") continue;
      expect(rendered.split(/[\n\r\u2028\u2029]/).length).toBe(lines);
      for (const setting of ["Host", "HostName", "User"])
        expect(rendered).toMatch(
          new RegExp(String.raw`^ *${setting} [A-Za-z0-9_.:][A-Za-z0-9_.:-]*$`, "m"),
        );
    }
  }
});

function attempt(render: () => string): string | undefined {
  try {
    return render();
  } catch {
    return undefined;
  }
}

test("a node behind an engine is reached with a command that also works in another shell", () => {
  const environment = { DOCKER_HOST: "tcp://far:2376", DOCKER_CERT_PATH: "/home/it's me/100%" };
  const through = passageThrough(engineKinds.docker, environment)("0123abcd");
  const hidden = {
    id: "i",
    role: "master",
    index: 0,
    ssh: { host: "172.18.0.2", port: 22, user: "root", through },
  };
  const config = renderSshConfig([hidden], { identityFile: "/key", knownHostsFile: "/hosts" });
  const [, command = ""] = /^ {2}ProxyCommand (.*)$/m.exec(config) ?? [];
  expect(command).toStartWith(
    `env 'DOCKER_HOST=tcp://far:2376' 'DOCKER_CERT_PATH=/home/it'\\''s me/100%%' docker exec --interactive '--user=0:0' 0123abcd /bin/sh -c `,
  );
});

test("a rootless engine looks for the node where its other commands do", () => {
  const environment = { XDG_DATA_HOME: "/data", CONTAINERS_STORAGE_CONF: "storage.conf" };
  const { argv } = passageThrough(engineKinds.podman, environment)("0123abcd");
  expect(argv.slice(0, 4)).toEqual([
    "env",
    `CONTAINERS_STORAGE_CONF=${resolve("storage.conf")}`,
    "XDG_DATA_HOME=/data",
    "podman",
  ]);
});

test("the context that `docker context use` chose stays the one in which a node is looked for", async () => {
  await using folder = await scratchFolder();
  const argvOf = (environment: Readonly<Record<string, string>>): readonly string[] =>
    passageThrough(engineKinds.docker, { DOCKER_CONFIG: folder.path, ...environment })("0123").argv;
  expect(argvOf({})).not.toContain("DOCKER_CONTEXT=far");
  await writeFile(join(folder.path, "config.json"), '{"currentContext":"far"}');
  expect(argvOf({}).slice(0, 6)).toEqual([
    "env",
    "-u",
    "DOCKER_HOST",
    `DOCKER_CONFIG=${folder.path}`,
    "DOCKER_CONTEXT=far",
    "docker",
  ]);
  // Each of these variables counts more than the file.
  expect(argvOf({ DOCKER_HOST: "tcp://near" })).not.toContain("DOCKER_CONTEXT=far");
  expect(argvOf({ DOCKER_CONTEXT: "near" })).not.toContain("DOCKER_CONTEXT=far");
  const podman = passageThrough(engineKinds.podman, { DOCKER_CONFIG: folder.path })("0123");
  expect(podman.argv.join(" ")).not.toContain("DOCKER_CONTEXT");
  // Nobody else's counts in another shell, or after another `docker context use`.
  for (const text of ['{"currentContext":"default"}', "{}"]) {
    await writeFile(join(folder.path, "config.json"), text);
    expect(argvOf({ DOCKER_HOST: "" })).toContain("DOCKER_CONTEXT=default");
    expect(argvOf({ DOCKER_HOST: "" }).slice(0, 3)).toEqual(["env", "-u", "DOCKER_HOST"]);
  }
});

test("an engine's address with a password stays in the environment, and is in no word of a command", () => {
  const environment = { CONTAINER_HOST: "ssh://me:geheim@far/run/podman.sock", PATH: "/bin" };
  const through = passageThrough(engineKinds.podman, environment)("0123abcd");
  expect(through.argv.join(" ")).not.toContain("geheim");
  expect(through.environment).toEqual(environment);
  expect(sshEnvironment(environment)).toEqual(environment);
  const open = { CONTAINER_HOST: "ssh://far/run/podman.sock", PATH: "/bin" };
  expect(passageThrough(engineKinds.podman, open)("0123").argv).toContain(
    `CONTAINER_HOST=${open.CONTAINER_HOST}`,
  );
  expect(sshEnvironment(open)).toEqual({ PATH: "/bin" });
});

test("an engine behind SSH is named with its user, and a folder of certificates wherever the login begins", () => {
  const argvOf = (environment: Readonly<Record<string, string>>): readonly string[] =>
    passageThrough(engineKinds.docker, environment)("0123").argv;
  expect(argvOf({ DOCKER_HOST: "ssh://me@far:2222" })).toContain("DOCKER_HOST=ssh://me@far:2222");
  const secure = argvOf({ DOCKER_HOST: "tcp://far:2376", DOCKER_CERT_PATH: "certs" });
  expect(secure).toContain(`DOCKER_CERT_PATH=${resolve("certs")}`);
  expect(argvOf({ DOCKER_HOST: "tcp://token@far:2376" }).join(" ")).not.toContain("token");
});

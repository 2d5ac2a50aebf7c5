/** What becomes of the keys of a machine that continues from another cluster's snapshot, with a real sshd. */

import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import {
  type KeyReplacement,
  replaceKeys,
  restartSshd,
} from "../../../../../src/backend/vm/copies/replace-keys.ts";
import { openConnection } from "../../../../../src/ssh/connection/open-connection.ts";
import { makeFirstContact } from "../../../../../src/ssh/first-contact.ts";
import { generateKeyPair } from "../../../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../../../src/ssh/openssh-files.ts";
import { passedMs, systemClock } from "../../../../../src/system/runtime.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { opensshLack, startOpensshServer } from "../../../../support/openssh-server.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";
import { until } from "../../../../support/until.ts";
import { wireKey } from "../../../../support/ssh-options.ts";

const checks = test.skipIf(opensshLack !== undefined);
const runtime = { environment: process.env, clock: systemClock, progress: silentProgress };
const limits = {
  connectTimeoutMs: 3_000,
  silenceMs: 10_000,
  keepaliveMs: 10_000,
  authenticationMayComeLater: false,
};

checks(
  `the old keys are no longer accepted, and the host key is the new one, for good (${opensshLack ?? "here"})`,
  async () => {
    await using scratch = await scratchFolder();
    const pidFile = join(scratch.path, "sshd.pid");
    await using server = await startOpensshServer([`PidFile ${pidFile}`]);
    const folder = server.hostKeyFolder;
    const [own, colleague] = [generateKeyPair("own"), generateKeyPair("colleague")];
    // As first contact leaves it, and as a user may extend it.
    await writeFile(join(folder, "e2e_host_key"), server.firstHostKey.privateKey, { mode: 0o600 });
    await writeFile(join(folder, "e2e_host_key.pub"), `${server.firstHostKey.publicKey}\n`);
    await writeFile(join(folder, "ssh_host_rsa_key"), "old");
    const others = join(scratch.path, "home", "other");
    await mkdir(others, { recursive: true });
    await writeFile(
      join(others, "authorized_keys"),
      `${server.loginKey.publicKey}\n${colleague.publicKey}\n`,
    );
    const node = {
      id: "vm",
      role: "agent",
      index: 0,
      ssh: { host: "127.0.0.1", port: server.port, user: server.user },
    };
    const hostKey = generateKeyPair("new");
    const replacement: KeyReplacement = {
      node: node as unknown as KeyReplacement["node"],
      old: {
        privateKey: server.loginKey.privateKey,
        hostKey: wireKey(server.firstHostKey.publicKey),
      },
      publicKey: own.publicKey,
      hostKey,
      location: {
        folder,
        reload: restartSshd(pidFile),
        authorizedKeys: join(dirname(folder), "authorized_keys"),
        otherAuthorizedKeys: `${scratch.path}/home/*/authorized_keys ${scratch.path}/nobody/authorized_keys`,
      },
      continues: false,
      setDeadline: "",
      deadlineMs: Date.now() + 250_000,
    };
    // A session that began with the old key, and what it has started.
    const saved = {
      name: "agent_0",
      host: "127.0.0.1",
      port: server.port,
      user: server.user,
      ...limits,
      ...runtime,
    };
    const session = await openConnection(
      {
        ...saved,
        privateKey: server.loginKey.privateKey,
        hostKeys: [wireKey(server.firstHostKey.publicKey)],
      },
      neverAborted,
    );
    const started = await session.run(
      { argv: ["sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!"] },
      neverAborted,
    );
    await replaceKeys({ ...runtime, signal: neverAborted }, replacement);
    await until("the old session has ended", () => !session.isOpen);
    expect(process.kill(Number(started.stdout), 0)).toBe(true);
    process.kill(Number(started.stdout));
    const logIn = async (privateKey: string, presented: string) => {
      const options = {
        name: "agent_0",
        host: "127.0.0.1",
        port: server.port,
        user: server.user,
        ...limits,
      };
      const connecting = openConnection(
        { ...options, privateKey, hostKeys: [wireKey(presented)], ...runtime },
        neverAborted,
      );
      await (await connecting)[Symbol.asyncDispose]();
    };
    expect(await failureOf(logIn(own.privateKey, server.firstHostKey.publicKey))).toMatchObject({
      id: "host-key-changed",
    });
    expect(await failureOf(logIn(server.loginKey.privateKey, hostKey.publicKey))).toMatchObject({
      id: "connection-failed",
      message: expect.stringContaining("refused the login"),
    });
    expect(await readFile(join(others, "authorized_keys"), "utf8")).toBe(
      `${colleague.publicKey}\n`,
    );
    for (const old of ["ssh_host_rsa_key", "e2e_host_key", "e2e_host_key.pub"])
      expect(await Bun.file(join(folder, old)).exists()).toBe(false);
    const knownHosts = createKnownHosts(join(scratch.path, "known_hosts"));
    const contact = {
      destination: node,
      privateKey: own.privateKey,
      firstHostKey: hostKey.publicKey,
      knownHosts,
    };
    const patience = { deadlineMs: passedMs(systemClock) + 250_000, everyMs: 100 };
    const rules = {
      hostKeyLocation: undefined,
      untilSwitched: true,
      clock: systemClock,
      ...patience,
    };
    const connection = await makeFirstContact(
      { ...contact, ...rules, progress: silentProgress },
      neverAborted,
    );
    await connection[Symbol.asyncDispose]();
    expect(await knownHosts.expected("127.0.0.1", server.port)).toEqual(wireKey(hostKey.publicKey));
  },
);

checks("a machine whose keys cannot be replaced is reported with the reason", async () => {
  await using server = await startOpensshServer([]);
  const node = {
    id: "vm",
    role: "agent",
    index: 0,
    ssh: { host: "127.0.0.1", port: server.port, user: server.user },
  };
  const nowhere = "/dev/null";
  const replacing = replaceKeys(
    { ...runtime, signal: neverAborted },
    {
      node: node as unknown as KeyReplacement["node"],
      old: {
        privateKey: server.loginKey.privateKey,
        hostKey: wireKey(server.firstHostKey.publicKey),
      },
      publicKey: generateKeyPair("own").publicKey,
      hostKey: generateKeyPair("new"),
      location: {
        folder: nowhere,
        reload: "true",
        authorizedKeys: `${nowhere}/x`,
        otherAuthorizedKeys: nowhere,
      },
      continues: false,
      setDeadline: "",
      deadlineMs: Date.now() + 250_000,
    },
  );
  expect(await failureOf(replacing)).toMatchObject({
    id: "remote-command-failed",
    message: expect.stringMatching(/^The keys of agent_0 cannot be replaced: .*\/dev\/null\/x/),
  });
});

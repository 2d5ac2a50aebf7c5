import { afterAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { makeFirstContact, type FirstContact } from "../../../src/ssh/first-contact.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts, type KnownHosts } from "../../../src/ssh/openssh-files.ts";
import { passedMs, systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { freePort } from "../../support/free-port.ts";
import {
  opensshLack,
  startOpensshServer,
  type OpensshServer,
} from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { scriptedClock } from "../../support/scripted-clock.ts";
import { connectTo, destinationOf, signal, wireKey } from "../../support/ssh-options.ts";
import { failureOf } from "../../support/failure-of.ts";
import { longEnough } from "../../support/long-enough.ts";
import { until } from "../../support/until.ts";

const contactWith = (server: OpensshServer, knownHosts: KnownHosts): FirstContact => ({
  destination: destinationOf(server),
  privateKey: server.loginKey.privateKey,
  firstHostKey: server.firstHostKey.publicKey,
  knownHosts,
  hostKeyLocation: { folder: server.hostKeyFolder, reload: server.reload },
  untilSwitched: false,
  clock: systemClock,
  deadlineMs: passedMs(systemClock) + 250_000,
  everyMs: 100,
  progress: silentProgress,
});

const keyOnDisk = async (server: OpensshServer): Promise<Buffer> =>
  wireKey(await readFile(join(server.hostKeyFolder, "ssh_host_ed25519_key.pub"), "utf8"));

describe.skipIf(opensshLack !== undefined)(
  `first contact with a real sshd (${opensshLack ?? "here"})`,
  () => {
    const hold: { server?: OpensshServer; scratch?: Awaited<ReturnType<typeof scratchFolder>> } =
      {};
    const server = (): OpensshServer => hold.server!;
    const newKnownHosts = (): KnownHosts =>
      createKnownHosts(join(hold.scratch!.path, "known_hosts"));
    const end = async (): Promise<void> => {
      await hold.server?.[Symbol.asyncDispose]();
      await hold.scratch?.[Symbol.asyncDispose]();
    };
    beforeEach(async () => {
      await end();
      hold.scratch = await scratchFolder();
      hold.server = await startOpensshServer([]);
      await Bun.$`ssh-keygen -q -t ecdsa -N "" -f ${join(server().hostKeyFolder, "ssh_host_ecdsa_key")}`;
    });
    afterAll(end);

    /** Checks that the new key is pinned, the only one on the node's disk, and enough for later connections. */
    const expectSwitched = async (): Promise<void> => {
      const pinned = await newKnownHosts().expected("127.0.0.1", server().port);
      expect(pinned).toEqual(await keyOnDisk(server()));
      expect(pinned).not.toEqual(wireKey(server().firstHostKey.publicKey));
      expect(
        (await readdir(server().hostKeyFolder))
          .filter((name) => name.startsWith("ssh_host_"))
          .toSorted(),
      ).toEqual(["ssh_host_ed25519_key", "ssh_host_ed25519_key.pub"]);
      await reloaded(server());
      await using later = await connectTo(server(), { hostKeys: [pinned!] });
      expect((await later.run({ argv: ["true"] }, signal)).status).toBe(0);
    };

    test("the node gets its own key, which is pinned here first, and the connection stays open", async () => {
      const order: string[] = [];
      const knownHosts = newKnownHosts();
      const watched: KnownHosts = {
        ...knownHosts,
        pin: async (host, port, key) => {
          expect(await keyOnDisk(server())).toEqual(wireKey(server().firstHostKey.publicKey));
          await knownHosts.pin(host, port, key);
          order.push("pinned");
        },
      };
      await using connection = await makeFirstContact(contactWith(server(), watched), signal);
      expect(order).toEqual(["pinned"]);
      expect((await connection.run({ argv: ["echo", "alive"] }, signal)).stdout).toBe("alive\n");
      await expectSwitched();
      expect(await failureOf(connectTo(server(), {}))).toMatchObject({ id: "host-key-changed" });
    });

    test("where other logins come at once, it returns only when sshd has switched, however long that takes", async () => {
      const contact = contactWith(server(), newKnownHosts());
      const reload = `(sleep 0.5; ${server().reload}) >/dev/null 2>&1 &`;
      const hostKeyLocation = { folder: server().hostKeyFolder, reload };
      await using connection = await makeFirstContact(
        { ...contact, untilSwitched: true, hostKeyLocation },
        signal,
      );
      // On a busy computer there were several tries, each of which has sshd restart.
      await until("sshd accepts the key", async () => {
        await using other = await connectTo(server(), { hostKeys: [await keyOnDisk(server())] });
        return connection.isOpen && other.isOpen;
      });
      await expectSwitched();
    });

    test("a repetition changes nothing", async () => {
      await (
        await makeFirstContact(contactWith(server(), newKnownHosts()), signal)
      )[Symbol.asyncDispose]();
      const key = await keyOnDisk(server());
      await reloaded(server());
      await using again = await makeFirstContact(contactWith(server(), newKnownHosts()), signal);
      expect(again.isOpen).toBe(true);
      expect(await keyOnDisk(server())).toEqual(key);
    });

    test.each([
      ["before the pin", false],
      ["after the pin", true],
    ])("interrupted %s, the next attempt has the same result", async (_name, isPinned) => {
      const knownHosts = newKnownHosts();
      const killed = new AbortController();
      const dying: KnownHosts = {
        ...knownHosts,
        pin: async (host, port, key) => {
          if (isPinned) await knownHosts.pin(host, port, key);
          killed.abort(new Error("killed"));
          throw killed.signal.reason;
        },
      };
      expect(
        (await failureOf(makeFirstContact(contactWith(server(), dying), killed.signal))).message,
      ).toBe("killed");
      expect(await keyOnDisk(server())).toEqual(wireKey(server().firstHostKey.publicKey));
      await using connection = await makeFirstContact(
        contactWith(server(), newKnownHosts()),
        signal,
      );
      expect(connection.isOpen).toBe(true);
      await expectSwitched();
    });

    test("interrupted during the switch, the next attempt has the same result", async () => {
      const half = {
        ...contactWith(server(), newKnownHosts()),
        hostKeyLocation: { folder: server().hostKeyFolder, reload: "exit 9" },
      };
      expect(await failureOf(makeFirstContact({ ...half, deadlineMs: 0 }, signal))).toMatchObject({
        id: "remote-command-failed",
      });
      await using connection = await makeFirstContact(
        contactWith(server(), newKnownHosts()),
        signal,
      );
      expect(connection.isOpen).toBe(true);
      await expectSwitched();
    });

    test("a login that is refused may succeed later", async () => {
      const { privateKey } = generateKeyPair("other");
      const rest = { privateKey, clock: scriptedClock(), deadlineMs: 200 };
      const error = await failureOf(
        makeFirstContact({ ...contactWith(server(), newKnownHosts()), ...rest }, signal),
      );
      expect(error).toMatchObject({ id: "connection-failed", transient: true });
      expect(error.message).toContain("refused the login");
    });

    // Shows R125.
    test("a node that presents another key before the first login is rejected at once", async () => {
      const contact = {
        ...contactWith(server(), newKnownHosts()),
        firstHostKey: generateKeyPair("other").publicKey,
      };
      expect(await failureOf(makeFirstContact(contact, signal))).toMatchObject({
        id: "host-key-changed",
      });
      expect(await keyOnDisk(server())).toEqual(wireKey(server().firstHostKey.publicKey));
    });

    test("a node whose first key nobody else knows keeps it, and only that key is accepted from then on", async () => {
      const contact = { ...contactWith(server(), newKnownHosts()), hostKeyLocation: undefined };
      const first = wireKey(server().firstHostKey.publicKey);
      await using connection = await makeFirstContact(contact, signal);
      expect((await connection.run({ argv: ["echo", "alive"] }, signal)).stdout).toBe("alive\n");
      expect(await newKnownHosts().expected("127.0.0.1", server().port)).toEqual(first);
      expect(await keyOnDisk(server())).toEqual(first);
      await using again = await makeFirstContact(contact, signal);
      expect(again.isOpen).toBe(true);
      await newKnownHosts().pin(
        "127.0.0.1",
        server().port,
        wireKey(generateKeyPair("other").publicKey),
      );
      const changed = { ...contact, knownHosts: newKnownHosts() };
      expect(await failureOf(makeFirstContact(changed, signal))).toMatchObject({
        id: "host-key-changed",
      });
    });

    // Shows R126.
    test("a node that announced one key can't announce another one at the next try", async () => {
      // Not sshd's, which therefore keeps the first key.
      const folder = join(hold.scratch!.path, "forgetful");
      await mkdir(folder);
      const hostKeyLocation = {
        folder,
        reload: `echo >>'${folder}/switches'; rm -f '${folder}'/e2e_host_key*; exit 9`,
      };
      const contact = { ...contactWith(server(), newKnownHosts()), hostKeyLocation };
      expect(await failureOf(makeFirstContact(contact, signal))).toMatchObject({
        id: "host-key-changed",
      });
      expect(await readFile(join(folder, "switches"), "utf8")).toBe("\n");
      const announced = wireKey(await readFile(join(folder, "ssh_host_ed25519_key.pub"), "utf8"));
      expect(await newKnownHosts().expected("127.0.0.1", server().port)).toEqual(announced);
    });

    // Shows R126.
    test("once a key is pinned, a node with the first key that announces another one is rejected at once", async () => {
      const knownHosts = newKnownHosts();
      const other = wireKey(generateKeyPair("other").publicKey);
      await knownHosts.pin("127.0.0.1", server().port, other);
      const error = await failureOf(
        makeFirstContact(contactWith(server(), newKnownHosts()), signal),
      );
      expect(error).toMatchObject({ id: "host-key-changed" });
      expect(await newKnownHosts().expected("127.0.0.1", server().port)).toEqual(other);
      expect(await keyOnDisk(server())).toEqual(wireKey(server().firstHostKey.publicKey));
    });

    // Shows R126.
    test("once a key is pinned, announcing it isn't enough: the node must present it", async () => {
      const pinned = generateKeyPair("pinned");
      const elsewhere = join(hold.scratch!.path, "not sshd's");
      await mkdir(elsewhere);
      await writeFile(join(elsewhere, "e2e_host_key"), pinned.privateKey, { mode: 0o600 });
      await writeFile(join(elsewhere, "e2e_host_key.pub"), `${pinned.publicKey}\n`);
      await newKnownHosts().pin("127.0.0.1", server().port, wireKey(pinned.publicKey));
      const hostKeyLocation = { folder: elsewhere, reload: "true" };
      await longEnough(1_000, async (limitMs) => {
        const contact = contactWith(server(), newKnownHosts());
        const limited = {
          ...contact,
          hostKeyLocation,
          deadlineMs: passedMs(systemClock) + limitMs,
        };
        const failure = await failureOf(makeFirstContact(limited, signal));
        expect(failure).toMatchObject({ id: "connection-failed", facts: { node: "master_0" } });
        return failure.message.includes("still presented");
      });
    });

    test("a command that keeps failing ends it before the deadline, with the node's message", async () => {
      const broken = { folder: "/no/such folder", reload: "true" };
      const contact = {
        ...contactWith(server(), newKnownHosts()),
        hostKeyLocation: broken,
        deadlineMs: passedMs(systemClock) + 60_000,
      };
      const error = await failureOf(makeFirstContact(contact, signal));
      expect(error.id).toBe("remote-command-failed");
      expect(error.message).toContain("/no/such folder");
      const count = async (event: string): Promise<number> =>
        (await server().log()).split(event).length - 1;
      const logins = await count("Accepted publickey");
      await until(
        "each connection is closed",
        async () => (await count("Disconnected from user")) === logins,
      );
    });
  },
);

test("a node that doesn't answer yet is retried until the deadline, and the last reason is reported", async () => {
  await using folder = await scratchFolder();
  const details: string[] = [];
  const port = await freePort();
  const clock = scriptedClock();
  const meeting = makeFirstContact(
    {
      destination: destinationOf({ port, user: "admin" }),
      privateKey: generateKeyPair("login").privateKey,
      firstHostKey: generateKeyPair("host").publicKey,
      knownHosts: createKnownHosts(join(folder.path, "known_hosts")),
      hostKeyLocation: { folder: "/", reload: "true" },
      untilSwitched: false,
      clock,
      deadlineMs: 1_000,
      everyMs: 100,
      progress: { ...silentProgress, detail: (_level, text) => void details.push(text) },
    },
    signal,
  );
  expect(await failureOf(meeting)).toMatchObject({ id: "connection-failed", transient: true });
  // Pauses are 120 ms long at most, and no try begins after the deadline.
  expect(clock.nowMs).toBeWithin(880, 1_001);
  expect(details).toEqual([
    `master_0: not yet: Cannot reach master_0 (127.0.0.1 port ${port}): connection refused.`,
  ]);
});

/** sshd restarts for its new keys. Meanwhile it doesn't listen. */
async function reloaded(server: OpensshServer): Promise<void> {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await server.log()).includes("Received SIGHUP; restarting.")) break;
    await Bun.sleep(10);
  }
  await server.listening();
}

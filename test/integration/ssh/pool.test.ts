import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import {
  type ConnectionPool,
  createConnectionPool,
  firstToAnswer,
} from "../../../src/ssh/connection/connection-pool.ts";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { createKnownHosts } from "../../../src/ssh/openssh-files.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";
import { freePort } from "../../support/free-port.ts";
import { startGate } from "../../support/ssh-gate.ts";
import {
  type OpensshServer,
  opensshLack,
  startOpensshServer,
} from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { connectTo, destinationOf, signal, wireKey } from "../../support/ssh-options.ts";

describe.skipIf(opensshLack !== undefined)(
  `a pool over a real sshd (${opensshLack ?? "here"})`,
  () => {
    const hold: { server?: OpensshServer } = {};
    const server = (): OpensshServer => hold.server!;
    beforeAll(async () => {
      hold.server = await startOpensshServer([]);
    });
    afterAll(() => server()[Symbol.asyncDispose]());

    interface OwnPool extends AsyncDisposable {
      readonly pool: ConnectionPool;
      /** Pins the server's key for another port. */
      pin(port: number): Promise<void>;
    }
    interface Changes {
      readonly key?: string;
      readonly hostKey?: string;
      readonly note?: (text: string) => void;
    }
    async function poolWith(changes: Changes): Promise<OwnPool> {
      const folder = await scratchFolder();
      const knownHosts = createKnownHosts(join(folder.path, "known_hosts"));
      const { key = server().loginKey.privateKey, hostKey = server().firstHostKey.publicKey } =
        changes;
      if (hostKey !== "") await knownHosts.pin("127.0.0.1", server().port, wireKey(hostKey));
      if (key !== "") await writeFile(join(folder.path, "key"), key);
      const privateKeyFile = join(folder.path, "key");
      const progress = { ...silentProgress, note: changes.note ?? silentProgress.note };
      const pool = createConnectionPool({
        privateKeyFile,
        knownHosts,
        clock: systemClock,
        progress,
      });
      return {
        pool,
        pin: (port) => knownHosts.pin("127.0.0.1", port, wireKey(server().firstHostKey.publicKey)),
        [Symbol.asyncDispose]: async () => {
          await pool[Symbol.asyncDispose]();
          await folder[Symbol.asyncDispose]();
        },
      };
    }
    const logins = async (): Promise<number> =>
      (await server().log()).split("Accepted publickey").length - 1;

    test("concurrent requests share one login", async () => {
      await using own = await poolWith({});
      const before = await logins();
      const nodes = Array.from({ length: 20 }, () => destinationOf(server()));
      const connections = await Promise.all(nodes.map((node) => own.pool.connect(node, signal)));
      expect(new Set(connections).size).toBe(1);
      expect((await connections[0]!.run({ argv: ["true"] }, signal)).status).toBe(0);
      expect((await logins()) - before).toBe(1);
    });

    test.each([
      [" \n", "is empty."],
      ["no key at all\n", "does not contain a private key."],
      ["-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\n", "does not contain a private key."],
    ])(
      "a key file that contains %j is an error about the key, without a login",
      async (key, problem) => {
        await using own = await poolWith({ key });
        const error = await failureOf(own.pool.connect(destinationOf(server()), signal));
        expect(error.id).toBe("key-missing");
        expect(error.message).toEndWith(problem);
        expect(error.hint).toStartWith("The file was damaged");
      },
    );

    test("a lost connection is opened again", async () => {
      await using own = await poolWith({});
      const first = await own.pool.connect(destinationOf(server()), signal);
      await failureOf(
        first.run(
          { argv: ["sh", "-c", 'kill -KILL "$(ps -o ppid= -p "$PPID")"; sleep 5'] },
          signal,
        ),
      );
      const second = await own.pool.connect(destinationOf(server()), signal);
      expect(second).not.toBe(first);
      expect((await second.run({ argv: ["true"] }, signal)).status).toBe(0);
    });

    test("an adopted connection is used, and closed with the others", async () => {
      const own = await poolWith({});
      const connection = await connectTo(server(), {});
      own.pool.adopt(destinationOf(server()), connection);
      expect(await own.pool.connect(destinationOf(server()), signal)).toBe(connection);
      await own[Symbol.asyncDispose]();
      expect(connection.isOpen).toBe(false);
      expect(await failureOf(own.pool.connect(destinationOf(server()), signal))).toMatchObject({
        id: "connection-failed",
      });
    });

    test("an aborted request doesn't close the connection for the others", async () => {
      await using own = await poolWith({});
      const abort = new AbortController();
      const impatient = failureOf(own.pool.connect(destinationOf(server()), abort.signal));
      const patient = own.pool.connect(destinationOf(server()), signal);
      abort.abort(new Error("no time"));
      expect((await impatient).message).toBe("no time");
      expect((await patient).isOpen).toBe(true);
    });

    test("without the key, the error names its path", async () => {
      await using own = await poolWith({ key: "" });
      const error = await failureOf(own.pool.connect(destinationOf(server()), signal));
      expect(error).toMatchObject({ id: "key-missing", exitCode: 5 });
      expect(error.hint).toContain("another computer");
    });

    test("a host key that isn't pinned yet is a transient error", async () => {
      await using own = await poolWith({ hostKey: "" });
      const error = await failureOf(own.pool.connect(destinationOf(server()), signal));
      expect(error).toMatchObject({
        id: "connection-failed",
        transient: true,
        facts: { node: "master_0" },
      });
      expect(error.message).toContain("host key");
    });

    test("a host key other than the pinned one is rejected", async () => {
      await using own = await poolWith({ hostKey: generateKeyPair("other").publicKey });
      expect(await failureOf(own.pool.connect(destinationOf(server()), signal))).toMatchObject({
        id: "host-key-changed",
      });
    });

    // Shows R64.
    test("of several nodes, the one that answers is chosen", async () => {
      await using own = await poolWith({});
      const port = await freePort();
      await own.pin(port);
      const dead = { ...destinationOf({ port, user: "root" }), index: 0 };
      const alive = { ...destinationOf(server()), index: 1 };
      const { connect } = own.pool;
      expect(await firstToAnswer([dead, alive], connect, signal)).toBe(alive);
      expect(await firstToAnswer([dead], connect, signal)).toBe(dead);
      expect(
        await failureOf(firstToAnswer([dead, { ...dead, index: 2 }], connect, signal)),
      ).toMatchObject({
        id: "connection-failed",
        transient: true,
        facts: { nodes: ["master_0", "master_2"] },
      });
    });

    test.each(["Not allowed at this time\r\n", "Exceeded MaxStartups\r\n"])(
      "a server that turns this computer away with %j is waited for",
      async (refusal) => {
        await using gate = await startGate(server().port, (connection) => connection <= 2, refusal);
        await using own = await poolWith({});
        await own.pin(gate.port);
        const connection = await own.pool.connect(
          destinationOf({ port: gate.port, user: "root" }),
          signal,
        );
        expect((await connection.run({ argv: ["true"] }, signal)).status).toBe(0);
        expect(gate.connections()).toBe(3);
      },
    );

    test("a server that turns this computer away for good is named with the reason, and an interrupt ends the wait", async () => {
      await using gate = await startGate(server().port, () => true);
      const target = { ...server(), port: gate.port };
      const error = await failureOf(connectTo(target, {}));
      expect(error).toMatchObject({
        id: "connection-failed",
        transient: true,
        facts: { node: "master_0" },
      });
      expect(error.message).toContain("accepts no connections from this computer now");
      await using own = await poolWith({});
      await own.pin(gate.port);
      const stop = new AbortController();
      const waiting = failureOf(
        own.pool.connect(destinationOf({ port: gate.port, user: "root" }), stop.signal),
      );
      await gate.met;
      stop.abort(new Error("interrupted"));
      expect((await waiting).message).toBe("interrupted");
    });

    test("silent nodes are noted after some seconds, all in one line", async () => {
      using mute = Bun.listen({
        hostname: "127.0.0.1",
        port: 0,
        socket: { open: () => {}, data: () => {} },
      });
      const notes: string[] = [];
      const noted = new AbortController();
      const note = (text: string): void => {
        notes.push(text);
        setTimeout(() => noted.abort(new Error("noted")), 500);
      };
      await using own = await poolWith({ note });
      await own.pin(mute.port);
      const nodes = [0, 1].map((index) => ({
        ...destinationOf({ port: mute.port, user: "root" }),
        id: `mute-${index}`,
        index,
      }));
      const failures = await Promise.all(
        nodes.map((node) => failureOf(own.pool.connect(node, noted.signal))),
      );
      expect(failures.map(({ message }) => message)).toEqual(["noted", "noted"]);
      expect(notes).toEqual(["Waiting for 2 nodes to answer over SSH."]);
    });
  },
);

/** Logins over a program, and ports that lead through them, with a real sshd. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { engineKinds } from "../../../src/backend/container/engine/engine-kinds.ts";
import { passageThrough } from "../../../src/backend/container/engine/passage.ts";
import type { Connection } from "../../../src/ssh/connection/connection.ts";
import { forwardPort } from "../../../src/ssh/forward-port.ts";
import { openProgramStream } from "../../../src/system/processes/program-stream.ts";
import { failureOf } from "../../support/failure-of.ts";
import { freePort } from "../../support/free-port.ts";
import {
  type OpensshServer,
  opensshLack,
  startOpensshServer,
} from "../../support/openssh-server.ts";
import { connectTo, signal } from "../../support/ssh-options.ts";

/** What an engine runs on a node, here for an sshd at another port. */
const relay = passageThrough(engineKinds.docker, {})("node").argv.at(-1)!;
const passage = (...argv: readonly string[]) => ({
  title: "Docker",
  argv,
  environment: { PATH: "/usr/bin:/bin" },
});
const passageTo = (port: number) =>
  passage("bash", "-c", relay.replace("127.0.0.1/22 ", `127.0.0.1/${port} `));

describe.skipIf(opensshLack !== undefined)(`with a real sshd (${opensshLack ?? "here"})`, () => {
  const hold: { server?: OpensshServer } = {};
  const server = (): OpensshServer => hold.server!;
  const connect = (): Promise<Connection> =>
    connectTo(server(), { through: passageTo(server().port) });
  beforeAll(async () => {
    hold.server = await startOpensshServer([]);
  });
  afterAll(() => server()[Symbol.asyncDispose]());

  test("a login goes over the program that leads to the node, with all bytes both ways", async () => {
    await using connection = await connect();
    const stdin = crypto.getRandomValues(new Uint8Array(65_536));
    const { status, stdout } = await connection.run({ argv: ["sha256sum"], stdin }, signal);
    const sum = new Bun.CryptoHasher("sha256").update(stdin).digest("hex");
    expect([status, stdout]).toEqual([0, `${sum}  -\n`]);
    const zeros = await connection.run({ argv: ["head", "-c", "3000000", "/dev/zero"] }, signal);
    expect(zeros.stdout).toHaveLength(3_000_000);
  });

  test("a port of 127.0.0.1 leads to one of the node's, until it is closed", async () => {
    const web = createServer((request, response) => response.end(`asked for ${request.url}`));
    await new Promise<void>((resolve) => web.listen(0, "127.0.0.1", resolve));
    const { port } = web.address() as AddressInfo;
    await using connection = await connect();
    const failures: string[] = [];
    const forward = await forwardPort(
      {
        // Nobody has this address, so the node's 127.0.0.1 answers.
        host: "127.0.0.77",
        port,
        localPort: 0,
        connect: async () => connection,
        onFailure: (reason) => failures.push(reason),
      },
      signal,
    );
    const url = `http://127.0.0.1:${forward.localPort}/here`;
    expect(await (await fetch(url)).text()).toBe("asked for /here");
    web.closeAllConnections();
    await new Promise((resolve) => web.close(resolve));
    await failureOf(fetch(url));
    expect(failures).toHaveLength(1);
    await forward[Symbol.asyncDispose]();
    expect((await failureOf(fetch(url))).message).toContain("ECONNREFUSED");
  });

  test("a port that drops packets fails after a limit, and says so", async () => {
    const failures = Promise.withResolvers<string>();
    const silent = {
      openPort: (_: unknown, inner: AbortSignal): Promise<never> =>
        new Promise((_resolve, reject) => {
          inner.addEventListener("abort", () => reject(inner.reason as Error));
        }),
    } as unknown as Connection;
    await using forward = await forwardPort(
      {
        host: "192.0.2.1",
        port: 8080,
        localPort: 0,
        limitMs: 50,
        connect: async () => silent,
        onFailure: failures.resolve,
      },
      signal,
    );
    await failureOf(fetch(`http://127.0.0.1:${forward.localPort}/`));
    expect(await failures.promise).toContain("Port 8080 of 127.0.0.1 did not answer within 0.05 s");
  });

  test("a local port that is taken is refused", async () => {
    const { port } = server();
    const connectNever = async (): Promise<Connection> => Promise.reject(new Error("never"));
    const asked = { host: "127.0.0.1", port: 1, connect: connectNever, onFailure: () => {} };
    expect(await failureOf(forwardPort({ ...asked, localPort: port }, signal))).toMatchObject({
      id: "bad-usage",
    });
  });

  test("what the program says is the reason if it leads nowhere", async () => {
    const port = await freePort();
    const unheard = await failureOf(connectTo(server(), { through: passageTo(port) }));
    expect(unheard).toMatchObject({ id: "connection-failed", transient: true });
    expect(unheard.message).toContain("(through Docker): ");
    const said = passage("sh", "-c", "echo 'No such container: node' >&2; exit 1");
    const failure = await failureOf(connectTo(server(), { through: said }));
    expect(failure.message).toContain("No such container: node");
    const missing = await failureOf(connectTo(server(), { through: passage("no-such-program") }));
    expect(missing).toMatchObject({ id: "connection-failed" });
  });

  test("a program that fails before anybody listens to it only fails the login", async () => {
    const { argv, environment } = passage("sh", "-c", "echo 'is not running' >&2; exit 1");
    const early = openProgramStream(argv, environment);
    while (!early.destroyed) await Bun.sleep(5);
    const failure = await failureOf(connectTo(server(), { connect: async () => early }));
    expect(failure.message).toContain("is not running");
  });
});

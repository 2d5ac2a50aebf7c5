import { type Socket, createConnection, createServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { unmarked } from "../../../../src/outside-text.ts";
import { openConnection } from "../../../../src/ssh/connection/open-connection.ts";
import { fingerprint, generateKeyPair } from "../../../../src/ssh/keys.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { freePort } from "../../../support/free-port.ts";
import {
  type OpensshServer,
  opensshLack,
  startOpensshServer,
} from "../../../support/openssh-server.ts";
import { connectTo, optionsFor, signal, wireKey } from "../../../support/ssh-options.ts";
import { until } from "../../../support/until.ts";

describe.skipIf(opensshLack !== undefined)(`with a real sshd (${opensshLack ?? "here"})`, () => {
  const hold: { server?: OpensshServer } = {};
  const server = (): OpensshServer => hold.server!;
  beforeAll(async () => {
    hold.server = await startOpensshServer([]);
  });
  afterAll(() => server()[Symbol.asyncDispose]());

  test.each([
    [["true"], { status: 0, stdout: "", stderr: "" }],
    [
      ["sh", "-c", "echo out; echo err >&2; exit 37"],
      { status: 37, stdout: "out\n", stderr: "err\n" },
    ],
    [
      ["printf", "%s|", "it's", "$HOME", "", "a\nb", "größe", "`id`"],
      { status: 0, stdout: "it's|$HOME||a\nb|größe|`id`|", stderr: "" },
    ],
    [["sh", "-c", "kill -TERM $$"], { status: 143, stdout: "", stderr: "" }],
    [["sh", "-c", "kill -KILL $$"], { status: 137, stdout: "", stderr: "" }],
  ])("returns the status and output of %j", async (argv, result) => {
    await using connection = await connectTo(server(), {});
    expect(await connection.run({ argv }, signal)).toEqual(result);
  });

  test("a missing program ends with 127, one that isn't executable with 126", async () => {
    await using connection = await connectTo(server(), {});
    expect((await connection.run({ argv: ["no-such-program"] }, signal)).status).toBe(127);
    expect((await connection.run({ argv: ["/etc/passwd"] }, signal)).status).toBe(126);
  });

  test("uses the requested folder and environment, and runs nothing if the folder is missing", async () => {
    await using connection = await connectTo(server(), {});
    const environment = { GREETING: 'it\'s "$me"\n' };
    const argv = ["sh", "-c", 'pwd; printf %s "$GREETING"'];
    expect((await connection.run({ argv, cwd: "/usr/share", environment }, signal)).stdout).toBe(
      '/usr/share\nit\'s "$me"\n',
    );
    expect(await connection.run({ argv: ["echo", "ran"], cwd: "/no/such" }, signal)).toMatchObject({
      status: 1,
      stdout: "",
    });
  });

  test.each([
    ["a text", "naïve\n", 7],
    ["bytes", new Uint8Array([0, 1, 255]), 3],
    ["nothing", undefined, 0],
  ])("stdin is %s", async (_name, stdin, bytes) => {
    await using connection = await connectTo(server(), {});
    const request = stdin === undefined ? { argv: ["wc", "-c"] } : { argv: ["wc", "-c"], stdin };
    expect((await connection.run(request, signal)).stdout.trim()).toBe(String(bytes));
  });

  test("a stream is sent as slowly as it is read, and may stay unread", async () => {
    await using connection = await connectTo(server(), {});
    const given = { chunks: 0 };
    const endless = async function* (): AsyncGenerator<Uint8Array, void, void> {
      for (;;) {
        given.chunks += 1;
        yield new Uint8Array(64 * 1024);
      }
    };
    const result = await connection.run(
      { argv: ["sh", "-c", "head -c 3000000 | wc -c"], stdin: endless() },
      signal,
    );
    expect(result.stdout.trim()).toBe("3000000");
    expect(given.chunks).toBeLessThan(200);
  });

  test("a failing source ends the command with the source's error", async () => {
    await using connection = await connectTo(server(), {});
    const broken = async function* (): AsyncGenerator<Uint8Array, void, void> {
      yield new Uint8Array(10);
      throw new RangeError("source broke");
    };
    const failure = await failureOf(
      connection.run({ argv: ["sleep", "61"], stdin: broken() }, signal),
    );
    expect(failure.message).toBe("source broke");
    const hasEnded = async () =>
      (await connection.run({ argv: ["pgrep", "-fx", "sleep 61"] }, signal)).status === 1;
    await until("the command has ended", hasEnded);
  });

  test("output is streamed in whole characters, and only the end of long output is kept", async () => {
    await using connection = await connectTo(server(), {});
    const chunks: string[] = [];
    const script = 'printf "\\303"; sleep 0.1; printf "\\274\\n"; echo second >&2';
    await connection.run(
      {
        argv: ["sh", "-c", script],
        onOutput: (stream, chunk) => void chunks.push(`${stream} ${chunk}`),
      },
      signal,
    );
    expect(chunks).toEqual(["stdout ü\n", "stderr second\n"]);
    const { stdout } = await connection.run({ argv: ["sh", "-c", "seq 1 900000"] }, signal);
    expect(stdout).toHaveLength(4 * 1024 * 1024);
    expect(stdout).toEndWith("899999\n900000\n");
  });

  test("commands wait if sshd has too few sessions", async () => {
    await using connection = await connectTo(server(), {});
    const numbers = Array.from({ length: 25 }, (_, number) => String(number));
    const results = await Promise.all(
      numbers.map((number) => connection.run({ argv: ["echo", number] }, signal)),
    );
    expect(results.map(({ stdout }) => stdout.trim())).toEqual(numbers);
  });

  test("commands wait on a node that allows two sessions", async () => {
    await using small = await startOpensshServer(["MaxSessions 2"]);
    await using connection = await connectTo(small, {});
    const numbers = Array.from({ length: 12 }, (_, number) => String(number));
    const results = await Promise.all(
      numbers.map((number) => connection.run({ argv: ["echo", number] }, signal)),
    );
    expect(results.map(({ stdout }) => stdout.trim())).toEqual(numbers);
  });

  test("on a node that allows one session, a command is killed at its time limit, and the connection survives", async () => {
    await using small = await startOpensshServer(["MaxSessions 1"]);
    await using connection = await connectTo(small, {});
    const error = await failureOf(connection.run({ argv: ["sleep", "66"], limitMs: 300 }, signal));
    expect(error.id).toBe("deadline-passed");
    expect((await connection.run({ argv: ["pgrep", "-fx", "sleep 66"] }, signal)).status).toBe(1);
  });

  test("on a node that allows one session, a command that ignores SIGTERM is killed", async () => {
    await using small = await startOpensshServer(["MaxSessions 1"]);
    await using connection = await connectTo(small, {});
    // A process of an earlier, killed run must not be mistaken for this one's.
    const seconds = `67.${process.pid}`;
    const script = `trap '' TERM; while :; do sleep ${seconds}; done`;
    await failureOf(connection.run({ argv: ["sh", "-c", script], limitMs: 300 }, signal));
    const look = async () =>
      (await connection.run({ argv: ["pgrep", "-f", `[s]leep ${seconds}`] }, signal)).stdout;
    await until("it has ended", async () => (await look()) === "");
  });

  test("an aborted command is killed on the node, with all processes that it started", async () => {
    await using connection = await connectTo(server(), {});
    const abort = new AbortController();
    const script = "sleep 62 & sh -c 'sleep 62; true' & echo started; wait";
    const onOutput = (): void => abort.abort(new Error("changed my mind"));
    expect(
      (await failureOf(connection.run({ argv: ["sh", "-c", script], onOutput }, abort.signal)))
        .message,
    ).toBe("changed my mind");
    expect((await connection.run({ argv: ["pgrep", "-fx", "sleep 62"] }, signal)).status).toBe(1);
    expect(connection.isOpen).toBe(true);
  });

  test("a command that ignores SIGTERM is killed", async () => {
    await using connection = await connectTo(server(), {});
    const abort = new AbortController();
    const script = "trap '' TERM; echo started; while :; do sleep 63; done";
    const onOutput = (): void => abort.abort(new Error("changed my mind"));
    expect(
      (await failureOf(connection.run({ argv: ["sh", "-c", script], onOutput }, abort.signal)))
        .message,
    ).toBe("changed my mind");
    const look = async () =>
      (await connection.run({ argv: ["pgrep", "-f", "[s]leep 63"] }, signal)).stdout;
    await until("it has ended", async () => (await look()) === "");
  });

  test.each([
    [{}, '"sleep 64"'],
    [{ task: "replacing its host key" }, "replacing its host key"],
  ])("the error about a time limit names what it was for: %j", async (task, what) => {
    await using connection = await connectTo(server(), {});
    const error = await failureOf(
      connection.run({ argv: ["sleep", "64"], limitMs: 300, ...task }, signal),
    );
    expect(error).toMatchObject({
      id: "deadline-passed",
      message: expect.stringContaining(what),
      facts: { node: "master_0", limitMs: 300 },
    });
    expect((await connection.run({ argv: ["pgrep", "-fx", "sleep 64"] }, signal)).status).toBe(1);
  });

  /** The parent of the login shell. */
  const findServer = 'server=$(ps -o ppid= -p "$PPID")';

  test("commands on a lost connection fail with a transient error", async () => {
    await using connection = await connectTo(server(), {});
    const cut = connection.run(
      { argv: ["sh", "-c", `${findServer}; kill -KILL "$server"; sleep 5`] },
      signal,
    );
    const error = await failureOf(cut);
    const facts = { node: "master_0", host: "127.0.0.1", port: server().port };
    expect(error).toMatchObject({ id: "connection-failed", transient: true, facts });
    expect(error.message).toContain("was lost");
    expect(connection.isOpen).toBe(false);
    expect(await failureOf(connection.run({ argv: ["true"] }, signal))).toMatchObject({
      id: "connection-failed",
    });
  });

  test("a node that stops answering counts as lost", async () => {
    await using connection = await connectTo(server(), { keepaliveMs: 100 });
    const sessions: number[] = [];
    const onOutput = (_stream: string, chunk: string): void => {
      sessions.push(Number(chunk));
      process.kill(Number(chunk), "SIGSTOP");
    };
    const error = await failureOf(
      connection.run(
        { argv: ["sh", "-c", `${findServer}; echo "$server"; sleep 5`], onOutput },
        signal,
      ),
    );
    for (const session of sessions) process.kill(session, "SIGKILL");
    expect(error).toMatchObject({ id: "connection-failed", transient: true });
    expect(error.message).toContain("no longer answers");
  });

  test("a disposed connection runs no more commands", async () => {
    const connection = await connectTo(server(), {});
    const started = Promise.withResolvers<void>();
    const argv = ["sh", "-c", "echo started; sleep 3"];
    const running = failureOf(connection.run({ argv, onOutput: () => started.resolve() }, signal));
    await started.promise;
    await connection[Symbol.asyncDispose]();
    const closed = {
      id: "connection-failed",
      transient: false,
      facts: { node: "master_0", port: server().port },
    };
    expect(await running).toMatchObject(closed);
    expect(connection.isOpen).toBe(false);
  });

  test("closing it does not wait until the server has ended its session", async () => {
    const socket = createConnection({ port: server().port, host: "127.0.0.1" });
    const connection = await connectTo(server(), { connect: async () => socket });
    const isClosed = Promise.withResolvers<boolean>();
    socket.once("finish", () => setImmediate(() => isClosed.resolve(socket.destroyed)));
    await connection[Symbol.asyncDispose]();
    expect(await isClosed.promise).toBe(true);
  });

  test("a wrong host key is rejected before anything is sent", async () => {
    const other = wireKey(generateKeyPair("other").publicKey);
    const error = await failureOf(connectTo(server(), { hostKeys: [other] }));
    const seen = fingerprint(wireKey(server().firstHostKey.publicKey));
    const facts = { node: "master_0", port: server().port, expected: fingerprint(other), seen };
    expect(error).toMatchObject({ id: "host-key-changed", transient: false, facts });
    expect(await server().log()).not.toContain("another-user");
    await failureOf(connectTo(server(), { hostKeys: [other], user: "another-user" }));
    expect(await server().log()).not.toContain("another-user");
  });

  test.each([true, false])(
    "a rejected login may succeed later: %p",
    async (authenticationMayComeLater) => {
      const { privateKey } = generateKeyPair("other");
      const error = await failureOf(
        connectTo(server(), { privateKey, authenticationMayComeLater }),
      );
      expect(error).toMatchObject({
        id: "connection-failed",
        transient: authenticationMayComeLater,
      });
      expect(error.message).toContain(`refused the login of ${server().user}`);
    },
  );

  test("details contain the commands and their output, each line with the node's name", async () => {
    const details: string[] = [];
    const progress = {
      ...silentProgress,
      detail: (level: number, text: string) => void details.push(unmarked(`${level} ${text}`)),
    };
    await using connection = await connectTo(server(), { progress });
    await connection.run({ argv: ["sh", "-c", "printf 'a\\nb'"] }, signal);
    expect(details).toEqual([
      "2 master_0: $ exec sh -c 'printf '\\''a\\nb'\\'''",
      "3 master_0: a",
      "3 master_0: b",
    ]);
  });
});

const nowhere = {
  user: "root",
  loginKey: generateKeyPair("login"),
  firstHostKey: generateKeyPair("host"),
};

test("a port without a server is a transient error", async () => {
  const port = await freePort();
  const error = await failureOf(connectTo({ ...nowhere, port }, {}));
  expect(error).toMatchObject({
    id: "connection-failed",
    transient: true,
    facts: { node: "master_0", port },
  });
  expect(error.message).toContain("connection refused");
});

test("an unknown host name is reported", async () => {
  const error = await failureOf(
    connectTo({ ...nowhere, port: 22 }, { host: "no-such-node.invalid" }),
  );
  expect(error).toMatchObject({ id: "connection-failed", transient: true });
  expect(error.message).toMatch(/(unknown host name|host name lookup failed)\.$/);
});

/** A TCP server that handles each connection in the same way. */
async function listen(
  onSocket: (socket: Socket) => void,
): Promise<AsyncDisposable & { readonly port: number }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    onSocket(socket);
  });
  const port = await freePort();
  await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
  return {
    port,
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

test.each([
  [
    "closes at once",
    (socket: Socket) => socket.end(),
    /the connection was closed before its SSH server answered\.$/,
  ],
  [
    "resets",
    (socket: Socket) => socket.resetAndDestroy(),
    /connection (reset|closed before its SSH server answered)\.$/,
  ],
  [
    "says nothing",
    () => {},
    /accepted the connection, but its SSH server did not answer in time\.$/,
  ],
  ["speaks HTTP", (socket: Socket) => socket.end("HTTP/1.1 400 Bad Request\r\n\r\n"), /master_0/],
])("a server that %s is a transient error", async (_name, onSocket, message) => {
  await using server = await listen(onSocket);
  const error = await failureOf(connectTo({ ...nowhere, port: server.port }, { silenceMs: 300 }));
  expect(error).toMatchObject({ id: "connection-failed", transient: true });
  expect(error.message).toMatch(message);
});

test("an abort ends a login in progress", async () => {
  const abort = new AbortController();
  await using server = await listen(() => abort.abort(new Error("no more")));
  const login = openConnection(optionsFor({ ...nowhere, port: server.port }), abort.signal);
  expect((await failureOf(login)).message).toBe("no more");
});

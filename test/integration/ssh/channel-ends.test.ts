/** The ways in which a command's channel can go on and end, with an SSH server in this process. */
import { afterEach, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { Server, type ServerChannel } from "ssh2";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { failureOf } from "../../support/failure-of.ts";
import { answerLogin } from "../../support/ssh-login.ts";
import { connectTo, signal } from "../../support/ssh-options.ts";

const state: { server?: Server } = {};
afterEach(() => void state.server?.close());

/** Commands that have begun. */
const tokens = new WeakMap<ServerChannel, string>();

function finish(channel: ServerChannel): void {
  const token = tokens.get(channel);
  if (token !== undefined) channel.stderr.write(`\u001e${token} end 0\n`);
  channel.exit(0);
  channel.end();
}

/** A server whose commands start normally and then end like this. */
async function startServer(end: (channel: ServerChannel) => void) {
  const [loginKey, firstHostKey] = [generateKeyPair("login"), generateKeyPair("host")];
  const server = new Server({ hostKeys: [firstHostKey.privateKey] }, (client) => {
    client.on("error", () => {});
    client.on("authentication", (context) => answerLogin(context, [loginKey.publicKey]));
    client.on("session", (accept) => {
      accept().on("exec", (acceptChannel, _, { command }) => {
        const channel = acceptChannel();
        const token = /^printf '\\036%s\\n' "(\S+) group/.exec(command)?.[1];
        if (token === undefined) return finish(channel);
        tokens.set(channel, token);
        channel.write(`\u001e${token} begun\n`);
        channel.stderr.write(`\u001e${token} group 1\n\u001e${token} begun\n`);
        end(channel);
      });
    });
  });
  state.server = server;
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, user: "root", loginKey, firstHostKey };
}

test("a command whose channel closes without an exit status is lost, not successful", async () => {
  const server = await startServer((channel) => channel.close());
  await using connection = await connectTo(server, {});
  const error = await failureOf(connection.run({ argv: ["true"] }, signal));
  expect(error).toMatchObject({ id: "connection-failed", transient: true });
  expect(error.message).toStartWith(
    `The connection to master_0 (127.0.0.1 port ${server.port}) was lost`,
  );
});

test("a command keeps the exit status that it sends before its channel closes", async () => {
  const server = await startServer((channel) => {
    channel.exit(7);
    channel.end();
  });
  await using connection = await connectTo(server, {});
  expect(await connection.run({ argv: ["true"] }, signal)).toEqual({
    status: 7,
    stdout: "",
    stderr: "",
  });
});

// Shows R130.
test("a command whose shell doesn't say how it ended is not successful, whatever the server reports", async () => {
  const server = await startServer((channel) => {
    channel.exit(0);
    channel.end();
  });
  await using connection = await connectTo(server, {});
  const error = await failureOf(connection.run({ argv: ["true"] }, signal));
  expect(error).toMatchObject({
    id: "remote-command-failed",
    transient: false,
    facts: { node: "master_0" },
  });
});

test("a command that is given up leaves no open channel", async () => {
  const closed = Promise.withResolvers<void>();
  const server = await startServer((channel) => void channel.on("close", closed.resolve).resume());
  await using connection = await connectTo(server, {});
  const broken = async function* (): AsyncGenerator<Uint8Array, void, void> {
    yield Buffer.from("a");
    throw new Error("source broke");
  };
  expect(
    (await failureOf(connection.run({ argv: ["true"], stdin: broken() }, signal))).message,
  ).toBe("source broke");
  await closed.promise;
});

const packets = 5_000;
const digits = Array.from({ length: packets }, (_, number) => String(number % 10).repeat(7));
const sent = digits.join("");

/** A server whose first command sends each of these texts in a packet of its own, and ends when the command with this number has come. The others end at once. */
async function startPackets(name: "stdout" | "stderr", endsAt: number) {
  const channels: ServerChannel[] = [];
  return startServer((channel) => {
    channels.push(channel);
    const stream = name === "stdout" ? channel : channel.stderr;
    if (channels.length === 1) for (const digit of digits) stream.write(digit);
    else finish(channel);
    if (channels.length === endsAt) finish(channels[0]!);
  });
}

const ends = [
  ["at once", 1],
  ["once everything has arrived", 3],
] as const;

test.each(ends)(
  "bytes that wait for a slow reader in packets of their own are merged, and arrive in order, if the command ends %s",
  async (_, endsAt) => {
    await using connection = await connectTo(await startPackets("stdout", endsAt), {});
    const chunks: Uint8Array[] = [];
    const receive = async (all: AsyncIterable<Uint8Array>): Promise<void> => {
      for await (const chunk of all) {
        // Packets keep their order: the first command's have arrived when this command has ended.
        if (chunks.push(chunk) === 1) await connection.run({ argv: ["true"] }, signal);
        if (Buffer.concat(chunks).length === sent.length)
          await connection.run({ argv: ["true"] }, signal);
      }
    };
    await connection.run({ argv: ["true"], receive }, signal);
    expect(Buffer.concat(chunks).toString()).toBe(sent);
    expect(chunks.length).toBeLessThan(packets / 100);
  },
);

test.each(
  (["stdout", "stderr"] as const).flatMap((name) =>
    ends.map(([when, endsAt]) => [name, when, endsAt] as const),
  ),
)(
  "text of %s that waits for a slow reader is merged, and arrives even if the channel closes %s",
  async (name, _, endsAt) => {
    await using connection = await connectTo(await startPackets(name, endsAt), {});
    const texts: string[] = [];
    const onOutput = async (_stream: string, text: string): Promise<void> => {
      if (texts.push(text) === 1) await connection.run({ argv: ["true"] }, signal);
      if (texts.join("") === sent) await connection.run({ argv: ["true"] }, signal);
    };
    const { status, [name]: kept } = await connection.run({ argv: ["true"], onOutput }, signal);
    expect({ status, kept, shown: texts.join("") }).toEqual({ status: 0, kept: sent, shown: sent });
    expect(texts.length).toBeLessThan(packets / 100);
  },
);

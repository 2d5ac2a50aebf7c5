/** How a command's channel can end, by an SSH server of this process. */
import { afterEach, expect, test } from "bun:test";
import type { AddressInfo } from "node:net";
import { Server, type ServerChannel } from "ssh2";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import { failureOf } from "../../support/failure-of.ts";
import { connectTo, signal } from "../../support/ssh-options.ts";

const state: { server?: Server } = {};
afterEach(() => void state.server?.close());

function finish(channel: ServerChannel): void {
  channel.exit(0);
  channel.end();
}

/** A server that lets everybody in, and whose commands begin well and end so. */
async function startServer(end: (channel: ServerChannel) => void) {
  const [loginKey, firstHostKey] = [generateKeyPair("login"), generateKeyPair("host")];
  const server = new Server({ hostKeys: [firstHostKey.privateKey] }, (client) => {
    client.on("error", () => {});
    client.on("authentication", (context) => context.accept());
    client.on("session", (accept) => {
      accept().on("exec", (acceptChannel, _, { command }) => {
        const channel = acceptChannel();
        const token = /^echo "(\S+) \$\$"/.exec(command)?.[1];
        if (token === undefined) return finish(channel);
        channel.write(`${token}\n`);
        channel.stderr.write(`${token} 1\n`);
        end(channel);
      });
    });
  });
  state.server = server;
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return { port: (server.address() as AddressInfo).port, user: "root", loginKey, firstHostKey };
}

test("a channel that closes without a status is a lost command, not a successful one", async () => {
  const server = await startServer((channel) => channel.close());
  await using connection = await connectTo(server, {});
  const error = await failureOf(connection.run({ argv: ["true"] }, signal));
  expect(error).toMatchObject({ id: "connection-failed", transient: true });
  expect(error.message).toStartWith(`The connection to master_0 (127.0.0.1 port ${server.port}) was lost`);
});

test("a command that says its status before its channel closes has it", async () => {
  const server = await startServer((channel) => {
    channel.exit(7);
    channel.end();
  });
  await using connection = await connectTo(server, {});
  expect(await connection.run({ argv: ["true"] }, signal)).toEqual({ status: 7, stdout: "", stderr: "" });
});

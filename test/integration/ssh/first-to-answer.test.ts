/** Which of several nodes is used if some of them are up but not ready. */
import { expect, test } from "bun:test";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { firstToAnswer } from "../../../src/ssh/connection/connection-pool.ts";
import { silentProgress } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { destinationOf, signal } from "../../support/ssh-options.ts";

/** A node whose port accepts connections and does this with each. */
async function listen(onConnection: (socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    onConnection(socket);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { node: destinationOf({ port, user: "root" }), [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

const closing = (socket: Socket): void => void socket.end();
const greeting = (socket: Socket): void => void socket.write("SSH-2.0-x\r\n");
const long = { limitMs: 60_000, progress: silentProgress };

test("nodes that hang up without a greeting are not waited for", async () => {
  await using first = await listen(closing);
  await using second = await listen(closing);
  const failure = await failureOf(firstToAnswer([first.node, second.node], long, signal));
  const facts = { nodes: ["master_0", "master_0"] };
  expect(failure).toMatchObject({ id: "connection-failed", transient: true, facts });
});

test("a node that hangs up, and one that says nothing, don't hold up the one that greets", async () => {
  await using first = await listen(closing);
  await using silent = await listen(() => {});
  await using ready = await listen(greeting);
  expect(await firstToAnswer([first.node, silent.node, ready.node], long, signal)).toBe(ready.node);
});

test("an interruption ends the wait for silent nodes, with its reason", async () => {
  const stop = new AbortController();
  await using first = await listen(() => stop.abort(new Error("interrupted")));
  await using second = await listen(() => {});
  const failure = await failureOf(firstToAnswer([first.node, second.node], long, stop.signal));
  expect(failure.message).toBe("interrupted");
});

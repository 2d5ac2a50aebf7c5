import type { CommandChannel } from "../../../../src/ssh/connection/exec-channel.ts";
import { expect, test } from "bun:test";
import { byteQueue } from "../../../../src/ssh/connection/command-output.ts";
import { failureOf } from "../../../support/failure-of.ts";

/** A queue, and whether its channel may send. */
function openQueue() {
  const stop = new AbortController();
  const state = { isFlowing: true };
  const channel = {
    pause: () => (state.isFlowing = false),
    resume: () => (state.isFlowing = true),
  };
  const queue = byteQueue(channel as unknown as CommandChannel, stop.signal);
  return { queue, stop, state, chunks: queue.chunks() };
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

test("chunks arrive in order, without empty ones, until the end", async () => {
  const { queue, chunks } = openQueue();
  for (const text of ["a", "", "bc"]) queue.add(bytes(text));
  queue.end();
  expect(await Array.fromAsync(chunks)).toEqual([bytes("a"), bytes("bc")]);
});

test("the end reaches a reader that waits for more", async () => {
  const { queue, chunks } = openQueue();
  const next = chunks.next();
  queue.end();
  expect((await next).done).toBe(true);
});

test("the node sends no more than the reader asks for", async () => {
  const { queue, state, chunks } = openQueue();
  queue.add(bytes("a"));
  expect(state.isFlowing).toBe(false);
  expect(await chunks.next()).toEqual({ done: false, value: bytes("a") });
  const next = chunks.next();
  expect(state.isFlowing).toBe(true);
  queue.add(bytes("b"));
  expect(state.isFlowing).toBe(false);
  expect(await next).toEqual({ done: false, value: bytes("b") });
});

test("once nobody reads any more, the rest is dropped, and the node is not held up", () => {
  const { queue, state } = openQueue();
  queue.add(bytes("a"));
  queue.close();
  expect(state.isFlowing).toBe(true);
  queue.add(bytes("b"));
  expect(state.isFlowing).toBe(true);
});

test("an abort ends the wait for more, with its reason", async () => {
  const { stop, chunks } = openQueue();
  const next = failureOf(chunks.next());
  stop.abort(new Error("enough"));
  expect((await next).message).toBe("enough");
});

test("after an abort, nothing that has arrived is delivered", async () => {
  const { queue, stop, chunks } = openQueue();
  queue.add(bytes("a"));
  stop.abort(new Error("enough"));
  expect((await failureOf(chunks.next())).message).toBe("enough");
});

import type { CommandChannel } from "../../../../src/ssh/connection/exec-channel.ts";
import { expect, test } from "bun:test";
import { EventEmitter } from "node:events";
import { messageOf } from "../../../../src/errors.ts";
import { outside } from "../../../../src/outside-text.ts";
import { feed, openChannel, type Link } from "../../../../src/ssh/connection/exec-channel.ts";
import { failureOf } from "../../../support/failure-of.ts";

const target = { name: "master_0", host: "192.0.2.1", port: 22, user: "admin" };
const { signal } = new AbortController();

test("a command on a connection that is just being lost fails as a lost connection", async () => {
  const exec = (): never => {
    throw new Error("Not connected");
  };
  const link = { exec, target } as unknown as Link;
  const failure = await failureOf(openChannel(link, "true", () => "begun", signal));
  expect(failure).toMatchObject({
    id: "connection-failed",
    transient: true,
    facts: { node: "master_0" },
  });
});

/** A channel that takes one chunk at a time. */
class SlowChannel extends EventEmitter {
  readonly written: string[] = [];
  readonly writable = true;
  write(chunk: Uint8Array): boolean {
    this.written.push(new TextDecoder().decode(chunk));
    return false;
  }
  end(): void {
    this.written.push("end");
  }
}

const twoChunks = async function* (): AsyncGenerator<Uint8Array, void, undefined> {
  yield Buffer.from("a");
  yield Buffer.from("b");
};

/** Feeds two chunks, after the first of which this happens. */
async function feedUntil(act: (channel: SlowChannel) => void, stop = new AbortController()) {
  const channel = new SlowChannel();
  const feeding = feed(channel as unknown as CommandChannel, twoChunks(), stop.signal).then(
    () => "fed",
    (error: unknown) => messageOf(error),
  );
  while (channel.listenerCount("drain") === 0) await new Promise(setImmediate);
  act(channel);
  return { channel, feeding };
}

test("the next chunk is written only when the node has read the one before", async () => {
  const { channel, feeding } = await feedUntil(() => {});
  expect(channel.written).toEqual(["a"]);
  channel.emit("drain");
  while (channel.written.length < 2 || channel.listenerCount("drain") === 0)
    await new Promise(setImmediate);
  channel.emit("drain");
  expect(await feeding).toBe("fed");
  expect(channel.written).toEqual(["a", "b", "end"]);
  expect(channel.eventNames()).toEqual([]);
});

test("an abort ends the wait for a node that reads no more", async () => {
  const stop = new AbortController();
  const { channel, feeding } = await feedUntil(() => stop.abort(new Error("enough")), stop);
  expect(await feeding).toBe(outside("enough"));
  expect(channel.eventNames()).toEqual([]);
});

test("nothing is started once the signal is aborted", async () => {
  const started: string[] = [];
  const link = { exec: (line: string) => started.push(line), target } as unknown as Link;
  const failure = await failureOf(
    openChannel(link, "true", () => "begun", AbortSignal.abort(new Error("enough"))),
  );
  expect(failure.message).toBe("enough");
  expect(started).toEqual([]);
});

test("an abort ends the wait for a channel, and one that opens later is closed", async () => {
  const [stop, events] = [new AbortController(), [] as string[]];
  const answers: Parameters<Link["exec"]>[1][] = [];
  const link = {
    exec: (_: string, onAnswer: (typeof answers)[0]) => answers.push(onAnswer),
    target,
  } as unknown as Link;
  const opening = failureOf(openChannel(link, "true", () => events.push("begun"), stop.signal));
  stop.abort(new Error("enough"));
  expect((await opening).message).toBe("enough");
  answers[0]!(undefined, { close: () => events.push("closed") } as unknown as CommandChannel);
  expect(events).toEqual(["closed"]);
});

/** Which of several nodes is used if some of them are up but not ready. */
import { expect, test } from "bun:test";
import { ClusterError } from "../../../src/errors.ts";
import { firstToAnswer } from "../../../src/ssh/connection/connection-pool.ts";
import type { Connection, Destination } from "../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../support/failure-of.ts";
import { destinationOf, signal } from "../../support/ssh-options.ts";

const node = (index: number): Destination => ({
  ...destinationOf({ port: 1, user: "root" }),
  index,
});
const failing = 0;
const silent = 1;
const ready = 2;

/** Logs in to one of the nodes only, and notes what it was asked for. */
function pool(asked: number[] = []) {
  return async ({ index }: Destination, inner: AbortSignal): Promise<Connection> => {
    asked.push(index);
    if (index === failing)
      throw new ClusterError("connection-failed", "It hung up.", { transient: true });
    if (index === ready) return {} as Connection;
    return await new Promise((_resolve, reject) => {
      inner.addEventListener("abort", () => reject(inner.reason), { once: true });
    });
  };
}

test("nodes that hang up are not waited for", async () => {
  const failure = await failureOf(firstToAnswer([node(failing), node(failing)], pool(), signal));
  const facts = { nodes: ["master_0", "master_0"] };
  expect(failure).toMatchObject({ id: "connection-failed", transient: true, facts });
});

test("a missing key is no silence", async () => {
  const missing = new ClusterError("key-missing", "The key is gone.");
  const connect = async ({ index }: Destination): Promise<Connection> => {
    throw index === failing
      ? new ClusterError("connection-failed", "It hung up.", { transient: true })
      : missing;
  };
  expect(await failureOf(firstToAnswer([node(failing), node(silent)], connect, signal))).toBe(
    missing,
  );
});

test("a node that hangs up, and one that says nothing, don't hold up the one that answers", async () => {
  const alive = node(ready);
  expect(await firstToAnswer([node(failing), node(silent), alive], pool(), signal)).toBe(alive);
});

test("a single node is not asked at all", async () => {
  const asked: number[] = [];
  expect(await firstToAnswer([node(silent)], pool(asked), signal)).toEqual(node(silent));
  expect(asked).toEqual([]);
});

test("an interruption ends the wait for silent nodes, with its reason", async () => {
  const stop = new AbortController();
  const failure = failureOf(firstToAnswer([node(silent), node(silent)], pool(), stop.signal));
  stop.abort(new Error("interrupted"));
  expect((await failure).message).toBe("interrupted");
});

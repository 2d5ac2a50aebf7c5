import { expect, test } from "bun:test";
import { ClusterError } from "../../../../src/errors.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { layouts } from "../../../../src/platform/layouts/find-layout.ts";
import { askOnMaster, parseSuperuserAnswers } from "../../../../src/platform/readiness/ask-web.ts";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { failureOf } from "../../../support/failure-of.ts";

const { signal } = new AbortController();

/** Asks on a master to which a connection fails. */
function ask(failure: Error) {
  const connections = { connect: async () => Promise.reject(failure) } as unknown as ConnectionPool;
  return askOnMaster(
    {} as NodeRecord,
    { release: layouts[0].release!, loginBody: "{}" },
    connections,
    signal,
  );
}

test.each([
  ["is lost", new ClusterError("connection-failed", "It is gone.", { transient: true })],
  ["takes too long", new ClusterError("deadline-passed", "It is gone.")],
])("a connection that %s is a problem for now", async (_, failure) => {
  expect(await ask(failure)).toEqual({ login: { problem: "It is gone." }, agents: undefined });
});

test("after an interruption, a lost connection is no answer", async () => {
  const stop = new AbortController();
  const connect = async (): Promise<never> => {
    stop.abort(new Error("interrupted"));
    throw new ClusterError("connection-failed", "It is gone.", { transient: true });
  };
  const question = { release: layouts[0].release!, loginBody: "{}" };
  const asking = askOnMaster({} as NodeRecord, question, { connect }, stop.signal);
  expect((await failureOf(asking)).message).toBe("interrupted");
});

test("another failure ends the wait", async () => {
  const changed = new ClusterError("host-key-changed", "Another machine.");
  expect(await failureOf(ask(changed))).toBe(changed);
  expect((await failureOf(ask(new TypeError("A bug")))).message).toBe("A bug");
});

test.each([
  [
    "login 200\nagents 200\n[]",
    { login: { status: 200, body: "" }, agents: { status: 200, body: "[]" } },
  ],
  ["login 401\n", { login: { status: 401, body: "" }, agents: undefined }],
  ["login 000\n", { login: { problem: "no answer on the master itself" }, agents: undefined }],
  ["Welcome\nlogin 200\n", undefined],
  ["", undefined],
])("the output %j is read as %j", (stdout, answers) => {
  expect(parseSuperuserAnswers(stdout)).toEqual(answers as never);
});

// Its head, which isn't passed on, counts too.
test.each([
  [3_000_000, { problem: "its answer is too long" }],
  [2_999_500, { problem: "its answer is too long" }],
  [2_900_000, { status: 200 }],
])("an answer of %d bytes that may have been cut off is a problem", (length, answer) => {
  const answers = parseSuperuserAnswers(`login 200\nagents 200\n${"x".repeat(length)}`);
  expect(answers?.agents).toMatchObject(answer);
});

import { expect, test } from "bun:test";
import { PassThrough } from "node:stream";
import type { CommandChannel, Link } from "../../../../src/ssh/connection/exec-channel.ts";
import { commandNotBegun } from "../../../../src/ssh/session/session-messages.ts";
import { failureOf } from "../../../support/failure-of.ts";

test("a connection that is lost while the login shell is asked for is reported, not taken for a strange shell", async () => {
  const lost = new AbortController();
  const closed = { count: 0 };
  const close = (): void => void (closed.count += 1);
  const channel = Object.assign(new PassThrough(), {
    stderr: new PassThrough(),
    close,
  }) as unknown as CommandChannel;
  const exec: Link["exec"] = (_line, onAnswer) => {
    onAnswer(undefined, channel);
    lost.abort(new Error("the connection was lost"));
  };
  const target = { name: "master_0", host: "192.0.2.1", port: 22, user: "admin" };
  const asking = commandNotBegun(
    { exec, target } as unknown as Link,
    { status: 143, output: "" },
    lost.signal,
  );
  expect((await failureOf(asking)).message).toBe("the connection was lost");
  expect(closed.count).toBe(1);
});

/** The question to a node over a real sshd: it has layouts of no platform, so it is always "not installed yet". */
import { describe, expect, test } from "bun:test";
import { askNode } from "../../../../src/platform/readiness/ask-node.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { opensshLack, startOpensshServer } from "../../../support/openssh-server.ts";
import { connectTo } from "../../../support/ssh-options.ts";
import { until } from "../../../support/until.ts";

const node = {
  role: "master",
  index: 0,
  state: "running",
  ssh: { host: "127.0.0.1" },
} as NodeRecord;

describe.skipIf(opensshLack !== undefined)(`with a real sshd (${opensshLack ?? "here"})`, () => {
  test("a node that waits leaves its login to others, and does not go on when it is given up", async () => {
    await using server = await startOpensshServer([]);
    await using connection = await connectTo(server, {});
    const connections = { connect: async () => connection } as never;
    const first = await askNode(node, { connections, looks: 2 }, neverAborted);
    const known = first.report?.seen;
    expect(known).toMatch(/^\d+-\d+$/);
    const stop = new AbortController();
    const waiting = failureOf(askNode(node, { connections, looks: 2, known }, stop.signal));
    const words = `e2e-readiness 2 ${known} 60`;
    const waits = async (): Promise<boolean> => {
      const { stdout } = await connection.run(
        { argv: ["pgrep", "-f", `[${words[0]}]${words.slice(1)}`] },
        neverAborted,
      );
      return stdout !== "";
    };
    await until("it waits", waits);
    const asRoot = { argv: ["echo", "hello"], sudo: true } as const;
    for (let count = 0; count < 4; count += 1)
      expect((await connection.run(asRoot, neverAborted)).stdout).toBe("hello\n");
    expect(await waits()).toBe(true);
    stop.abort(new Error("enough"));
    expect((await waiting).message).toBe("enough");
    await until("it has ended", async () => !(await waits()));
  });
});

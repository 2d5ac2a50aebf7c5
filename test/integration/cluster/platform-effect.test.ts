/** Faults that count as shown only when a command shows them, and as healed only when every node's check passes. */
import { describe, expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import type { Backend } from "../../../src/backend/contract.ts";
import { untilFaultEnds } from "../../../src/cluster/faults/faults.ts";
import { Cluster } from "../../../src/index.ts";
import { readEvents } from "../../../src/store/events.ts";
import { failureOf } from "../../support/failure-of.ts";
import { openFaultyCluster } from "../../support/faulty-cluster.ts";
import { exampleTraits } from "../../support/install-example.ts";
import { machinesLack } from "../../support/install-machine.ts";
import { signal } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";

/** A cluster whose platform is installed. Its nodes' checks run this shell line. */
async function openWithCheck(line: string) {
  const opened = await openFaultyCluster();
  for (const { folder, write } of opened.machines) {
    await write("var/lib/cluster-e2e/layout", "cluster\n");
    await write("var/lib/cluster-e2e/install.status", "exit 0\n");
    await write("opt/cluster/bin/check", `#!/bin/sh\ncd "$MACHINE" || exit\n${line}\n`);
    await chmod(join(folder, "opt/cluster/bin/check"), 0o755);
  }
  const coursesOf = async (): Promise<readonly unknown[]> =>
    (await readEvents(opened.directory)).flatMap((event) =>
      event.kind === "fault" ? [event.course] : [],
    );
  return { ...opened, coursesOf };
}

const isCut = "test -e cut";
const never = "echo all is well; false";

describe.skipIf(machinesLack !== undefined)("what the platform makes of a fault", () => {
  test("a fault shows when the command succeeds, and is healed when every check passes", async () => {
    const { machines, begin, list, end, cuts, told, coursesOf, stack } = await openWithCheck(
      "[ -e recovered ] || { echo a member is missing; exit 1; }",
    );
    await using _ = stack;
    const { fault } = await begin({ until: isCut, untilNodes: ["all"] });
    expect(told).toContainEqual(expect.stringMatching(/0 of 4 .*; the platform shows it after /));
    expect(await list()).toMatchObject([{ id: fault.id, awaitsCheck: true }]);
    expect(await coursesOf()).toEqual(["begun", "shown"]);
    const ending = end();
    await until("the checks fail", () => told.some((line) => line.includes("a member is missing")));
    expect(await cuts()).toEqual([false, false, false]);
    expect(await coursesOf()).toEqual(["begun", "shown"]);
    for (const machine of machines) await machine.write("recovered", "");
    await ending;
    expect(told).toContainEqual(expect.stringMatching(/^Healed .*; every node's check passes/));
    expect(await coursesOf()).toEqual(["begun", "shown", "healed"]);
  });

  test("a fault that the platform does not show is healed, and is an error", async () => {
    const { begin, list, cuts, coursesOf, stack } = await openWithCheck("true");
    await using _ = stack;
    const failure = await failureOf(
      begin({ until: never, untilNodes: ["agent_0"], durationMs: 3_000 }),
    );
    expect(failure).toMatchObject({
      id: "deadline-passed",
      message: expect.stringMatching(
        /does not show it: .* did not succeed on agent_0 .*all is well/,
      ),
    });
    expect([await cuts(), await list()]).toEqual([[false, false, false], []]);
    expect(await coursesOf()).toEqual(["begun", "failed"]);
  });

  test("a command that succeeds without the fault is warned about", async () => {
    const { begin, told, stack } = await openWithCheck("true");
    await using _ = stack;
    await begin({ until: "true" });
    expect(told).toContainEqual(expect.stringMatching(/"true" succeeds without the fault/));
  });

  test("where the command shall succeed is checked before anything begins", async () => {
    const { begin, coursesOf, stack } = await openWithCheck("true");
    await using _ = stack;
    const failure = await failureOf(begin({ until: isCut, untilNodes: ["agent_7"] }));
    expect(failure.id).toBe("node-not-found");
    expect(await coursesOf()).toEqual([]);
  });

  test("an interrupted wait heals the fault, and awaits no check", async () => {
    const { backend, named, runtime, begin, list, stack } = await openWithCheck("false");
    await using _ = stack;
    const begun = await begin({ until: isCut });
    const interruption = new AbortController();
    const waiting = { ...named, begun };
    const failing = failureOf(
      untilFaultEnds({ ...runtime, signal: interruption.signal }, backend, waiting),
    );
    interruption.abort(new Error("Enough"));
    expect((await failing).message).toBe("Enough");
    expect(await list()).toEqual([]);
  });

  test("the wait for the end of a fault includes the check", async () => {
    const { machines, backend, named, runtime, told, begin, stack } = await openWithCheck("true");
    await using _ = stack;
    for (const machine of machines) await machine.write("timed", "");
    const begun = await begin({ until: isCut, durationMs: 1_000 });
    for (const { folder } of machines) await Bun.file(join(folder, "timed")).delete();
    await untilFaultEnds({ ...runtime, signal }, backend, { ...named, begun });
    expect(told).toContainEqual(expect.stringMatching(/^Healed .*; every node's check passes/));
  });

  test("while another fault stays, no check is awaited", async () => {
    const { begin, end, told, stack } = await openWithCheck("false");
    await using _ = stack;
    await begin({ between: ["master_1"], and: ["agent_0"], oneWay: true });
    await begin({ and: ["master_0"], oneWay: true, until: isCut, untilNodes: ["master_0"] });
    await end(["master_0"]);
    expect(told).toContainEqual(expect.stringMatching(/^Healed .*; there are other faults: 1/));
  });

  test("the library begins such a fault, and waits for the check at the end of its scope", async () => {
    const { backend, named, runtime, told, cuts, stack } = await openWithCheck("true");
    await using _ = stack;
    const clusters = {
      distribution: "debian-12",
      settings: () => ({ runtime, options: undefined }),
      open: async () => ({ ...backend, nodes: exampleTraits }) as Backend<unknown>,
    };
    const cluster = await Cluster.find(clusters, named.clusterId);
    const cut = { kind: "partition", between: ["agent_0"], durationMs: 60_000 } as const;
    {
      await using _fault = await cluster.fault({ ...cut, until: isCut });
      expect(await cuts()).toContain(true);
    }
    expect(told).toContainEqual(expect.stringMatching(/^Healed .*; every node's check passes/));
    const wrong = await failureOf(cluster.fault({ ...cut, untilNodes: ["agent_0"] }));
    expect(wrong).toMatchObject({ id: "bad-usage", message: expect.stringContaining("`until`") });
  });
});

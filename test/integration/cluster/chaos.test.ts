/** Random faults, on machines whose systemd, nft and ping are small scripts. */
import { describe, expect, test } from "bun:test";
import type { Context } from "../../../src/cli/command.ts";
import { withChaos } from "../../../src/commands/once/with-chaos.ts";
import { runChaos } from "../../../src/cluster/faults/chaos.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { failureOf } from "../../support/failure-of.ts";
import { machinesLack } from "../../support/install-machine.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scriptedClock } from "../../support/scripted-clock.ts";
import { signal } from "../../support/ssh-options.ts";
import { until } from "../../support/until.ts";
import { openFaultyCluster } from "../../support/faulty-cluster.ts";

describe.skipIf(machinesLack !== undefined)("random faults", () => {
  const chaos = {
    seed: 7,
    everyMs: 5_000,
    kinds: ["partition"],
    targets: ["majority"],
  } as const;

  test("chaos that is interrupted heals its present fault", async () => {
    const { backend, named, runtime, told, list, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    const interruption = new AbortController();
    const begun: number[] = [];
    const onFault = ({ number }: { readonly number: number }): void => void begun.push(number);
    const request = { ...named, options: chaos, onFault };
    const failing = failureOf(
      runChaos({ ...runtime, signal: interruption.signal }, backend, request),
    );
    await until("a fault shows", () => told.some((text) => text.startsWith("The fault shows")), {
      limitMs: 100_000,
    });
    interruption.abort(new Error("Enough"));
    expect((await failing).message).toBe("Enough");
    expect([begun, await cuts(), await list()]).toEqual([[1], [false, false, false], []]);
  });

  test("kinds that no node can have are refused, whichever of them is drawn first", async () => {
    const { backend, named, runtime, told, stack } = await openFaultyCluster();
    await using _ = stack;
    const cluster = await backend.find(named.clusterId, signal);
    backend.find = async () => ({ ...cluster!, backend: "container" });
    const options = { ...chaos, kinds: ["partition", "power"] } as const;
    const failure = await failureOf(
      runChaos({ ...runtime, signal }, backend, { ...named, options }),
    );
    expect([failure.id, told]).toEqual(["bad-usage", []]);
  });

  test("another chaos on the same cluster is refused, and the first one goes on", async () => {
    const { backend, named, runtime, told, list, stack } = await openFaultyCluster();
    await using _ = stack;
    const interruption = new AbortController();
    const request = { ...named, options: chaos };
    const first = failureOf(
      runChaos({ ...runtime, signal: interruption.signal }, backend, request),
    );
    await until("a fault shows", () => told.some((text) => text.startsWith("The fault shows")), {
      limitMs: 100_000,
    });
    expect((await failureOf(runChaos({ ...runtime, signal }, backend, request))).id).toBe(
      "cluster-busy",
    );
    interruption.abort(new Error("Enough"));
    expect([(await first).message, await list()]).toEqual(["Enough", []]);
  });

  test.each(["vain", "dead"])(
    "chaos ends with an error if a node is %s, and leaves no fault",
    async (state) => {
      const { machines, backend, named, runtime, list, cuts, stack } = await openFaultyCluster();
      await using _ = stack;
      if (state === "dead") await machines[2]!.close();
      else for (const machine of machines) await machine.write(state, "");
      const failure = await failureOf(
        runChaos({ ...runtime, signal }, backend, { ...named, options: chaos }),
      );
      expect(failure.id).toBe(state === "dead" ? "connection-failed" : "remote-command-failed");
      expect([await cuts(), await list()]).toEqual([[false, false, false], []]);
    },
  );

  test("chaos beside a command ends with it, and names its seed first and last", async () => {
    const { backend, named, runtime, told, list, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    const context = { ...runtime, signal } as unknown as Context;
    const command = async (): Promise<number> => {
      await until("a fault shows", () => told.some((text) => text.includes("The fault shows")), {
        limitMs: 100_000,
      });
      return 3;
    };
    const given = { ...named, options: chaos };
    expect(await withChaos(backend, given, context, command)).toBe(3);
    expect([await cuts(), await list()]).toEqual([[false, false, false], []]);
    expect(told[0]).toBe("Chaos: seed=7,every=5s,kinds=partition,targets=majority");
    expect(told.findLast((text) => text.includes("seed"))).toStartWith("Chaos had seed 7.");
  });

  test("a command that succeeds before a fault shows gets a warning, and one that fails doesn't", async () => {
    const { backend, named, runtime, told, stack } = await openFaultyCluster();
    await using _ = stack;
    const context = { ...runtime, signal } as unknown as Context;
    const given = { ...named, options: { ...chaos, everyMs: 3_600_000 } };
    const warned = (): boolean => told.some((text) => text.includes("before the first fault"));
    for (const status of [3, 0]) {
      expect(await withChaos(backend, given, context, async () => status)).toBe(status);
      expect(warned()).toBe(status === 0);
    }
  });

  test("an interruption heals nothing on a cluster that is about to go", async () => {
    const { backend, named, runtime, told, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    const interruption = new AbortController();
    const context = { ...runtime, signal: interruption.signal } as unknown as Context;
    const command = async (): Promise<number> => {
      await until("a fault shows", () => told.some((text) => text.includes("The fault shows")), {
        limitMs: 100_000,
      });
      interruption.abort(new Error("Enough"));
      throw new Error("Enough");
    };
    const given = { ...named, options: chaos, abandon: interruption.signal };
    expect((await failureOf(withChaos(backend, given, context, command))).message).toBe("Enough");
    expect(await cuts()).toContain(true);
  });

  test("chaos that fails says so while the command runs", async () => {
    const { machines, backend, named, runtime, told, stack } = await openFaultyCluster();
    await using _ = stack;
    for (const machine of machines) await machine.write("vain", "");
    const context = { ...runtime, signal } as unknown as Context;
    const isTold = (): boolean => told.some((text) => text.includes("no other fault begins"));
    const command = async (): Promise<number> => {
      await until("the failure is told", isTold);
      return 0;
    };
    const given = { ...named, options: chaos };
    const failure = await failureOf(withChaos(backend, given, context, command));
    expect(failure.id).toBe("remote-command-failed");
  });

  test("the plan is printed, and nothing begins, with --dry-run; the same plan without", async () => {
    const { machines, backend, cuts, stack } = await openFaultyCluster();
    await using _ = stack;
    const run = async (words: string) =>
      runCommandLine(`fault random --targets majority --every 5s --for 5s ${words} -c example`, {
        kind: containerKind,
        backend,
        nowMs: 0,
        clock: scriptedClock(),
        columns: 120,
      });
    const planned = await run("--seed 7 --dry-run");
    expect(planned.stdout).toStartWith("seed 7\n1. after 0.0 s: partition on ");
    expect([await run("--seed 7 --dry-run"), await cuts()]).toEqual([
      planned,
      [false, false, false],
    ]);
    for (const machine of machines) await machine.write("vain", "");
    expect(await failureOf(run("--seed 7"))).toMatchObject({ id: "remote-command-failed" });
  });
});

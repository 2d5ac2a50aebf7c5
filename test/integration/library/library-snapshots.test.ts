/** The library with a backend that has snapshots: connections and nodes around a restore. */

import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import type { Backend } from "../../../src/backend/contract.ts";
import type { Snapshots } from "../../../src/backend/contract.ts";
import { Cluster } from "../../../src/index.ts";
import { libraryRuntime } from "../../../src/library/runtime.ts";
import type { ClusterRecord } from "../../../src/model/cluster-record.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster, exampleTraits } from "../../support/install-example.ts";
import { type FolderMachine, machinesLack, startMachines } from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

interface Fixture extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly master: FolderMachine;
  /** What the backend does at the next restore. */
  readonly next: { restore: () => Promise<void> };
  /** The names of saved and restored snapshots, in order. */
  readonly called: string[];
}

/** A cluster of one master, which gets another id with each restore. */
async function openFixture(): Promise<Fixture> {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles: ["master"] });
  const directory = join(scratch.path, "example");
  await machines.openTo(directory);
  const [master] = machines.machines;
  const called: string[] = [];
  const next = { restore: async () => {} };
  const found = (): ClusterRecord => {
    const restores = called.filter((line) => line.startsWith("restore")).length;
    return { ...exampleCluster([{ ...master!.node, id: `i-${restores}` }], "oss"), directory };
  };
  const snapshots = {
    list: async () =>
      called.map((name) => ({ name, createdAt: undefined, sizeBytes: 0, isComplete: true })),
    create: async (_cluster, name) => void called.push(`create ${name}`),
    restore: async (_cluster, name) => {
      await next.restore();
      called.push(`restore ${name}`);
    },
    delete: async () => {},
    holdsMemory: false,
  } satisfies Partial<Snapshots>;
  const backend = {
    name: "vm",
    nodes: exampleTraits,
    find: async () => found(),
    local: { snapshots },
  };
  const runtime = libraryRuntime({ environment: { XDG_STATE_HOME: scratch.path } }, {});
  const cluster = await Cluster.find(
    {
      distribution: "debian-12",
      settings: () => ({ runtime, options: undefined }),
      open: async () => backend as unknown as Backend<undefined>,
    },
    "example",
  );
  return {
    cluster,
    master: master!,
    next,
    called,
    [Symbol.asyncDispose]: async () => {
      await master!.write("run/go", "");
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const hello = { args: ["echo", "hello"] };

describe.skipIf(machinesLack !== undefined)("a cluster with snapshots", () => {
  test("is saved and restored under the given name, and lists its snapshots", async () => {
    await using fixture = await openFixture();
    const { cluster, called } = fixture;
    await cluster.snapshot("installed");
    await cluster.restore("installed");
    expect(called).toEqual(["create installed", "restore installed"]);
    expect((await cluster.snapshots()).map(({ name }) => name)).toEqual(called);
    expect((await failureOf(cluster.restore("../x"))).id).toBe("bad-usage");
  });

  test("has its nodes under their new ids after a restore", async () => {
    await using fixture = await openFixture();
    const { cluster } = fixture;
    expect(cluster.masters[0].id).toBe("i-0");
    await cluster.restore("installed");
    expect(cluster.masters[0].id).toBe("i-1");
    expect((await cluster.masters[0].run(hello)).stdout).toBe("hello\n");
  });

  test("ends a command before its node is replaced", async () => {
    await using fixture = await openFixture();
    const { cluster, master, next } = fixture;
    const line =
      ': >"$MACHINE/run/begun"; until [ -e "$MACHINE/run/go" ] || [ ! -d "$MACHINE" ]; do sleep 0.02; done';
    const running = failureOf(cluster.masters[0].run({ args: ["sh", "-c", line], asRoot: false }));
    await until("the command runs", async () => (await master.read("run/begun")) === "");
    next.restore = async () => {
      expect((await running).id).toBe("connection-failed");
    };
    await cluster.restore("installed");
  });

  test("uses no connection that was opened during a restore", async () => {
    await using fixture = await openFixture();
    const { cluster, master, next } = fixture;
    const logins = (): number =>
      master.commands.filter((command) => command.includes("e2e-secrets")).length;
    next.restore = async () => void (await cluster.masters[0].run(hello));
    await cluster.restore("installed");
    const before = logins();
    await cluster.masters[0].run(hello);
    // A new login reads which secrets to mask: the restored cluster may have others.
    expect([before, logins()]).toEqual([1, 2]);
  });
});

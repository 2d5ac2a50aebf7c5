import { mkdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import type { Way } from "../../../../src/backend/container/engine/find-reach.ts";
import type { EngineFacts } from "../../../../src/backend/container/engine/engine-kind.ts";
import type { Engine } from "../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import {
  type ContainerFacts,
  hostChecks,
  judgeInotify,
} from "../../../../src/backend/container/host-checks.ts";
import {
  type EngineMachine,
  lookAtMachine,
  readMachine,
} from "../../../../src/backend/container/look-at-machine.ts";
import { ClusterError } from "../../../../src/errors.ts";
import type { Outcome } from "../../../../src/model/check.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";

interface Machine {
  readonly told?: Partial<EngineFacts>;
  readonly reach?: Way["reach"];
  readonly machine?: EngineMachine;
}

/** What the check of this name says about an engine on such a machine. */
async function judged(
  name: string,
  { told = {}, reach = "direct", machine }: Machine,
): Promise<Outcome> {
  const facts = {
    engine: async () => ({ kind: engineKinds.docker }),
    engineFacts: async () => ({ idleLimits: [], ...told }),
    way: async () => ({ reach, why: "because" }),
    machine: async () => machine,
  } as unknown as ContainerFacts;
  const check = hostChecks(facts).find((each) => each.name === name)!;
  return check.run(neverAborted);
}

test.each([
  ["overlay2", "pass"],
  ["btrfs", "pass"],
  ["vfs", "warn"],
  ["devicemapper", "warn"],
  ["aufs", "warn"],
  ["", "skip"],
])("the storage driver %s: %s", async (storageDriver, status) => {
  const outcome = await judged("storage driver", { told: { storageDriver } });
  expect(outcome.status).toBe(status as Outcome["status"]);
  expect(outcome.message).toContain(storageDriver);
});

test.each([
  [2e9, "pass: 2.0 GB"],
  [
    1.9e9,
    "warn: Docker's machine has 1.9 GB of memory, but a small cluster needs 2 GB. → " +
      "Use fewer nodes, or give the virtual machine in which Docker runs more memory.",
  ],
])("memory of %d bytes: %s", async (memoryBytes, expected) => {
  expect(outcomeText(await judged("memory", { told: { memoryBytes } }))).toBe(expected);
});

test("the space is that of the engine's folder", async () => {
  await using folder = await scratchFolder();
  const { bavail, bsize } = await statfs(folder.path);
  const outcome = await judged("image space", { told: { rootFolder: folder.path } });
  expect(outcome.status).toBe(bavail * bsize >= 5e9 ? "pass" : "fail");
  const [, shown = ""] = / has (\d+\.\d) GB free/.exec(outcome.message) ?? [];
  // Others write to this disk meanwhile.
  expect(Math.abs(Number(shown) - (bavail * bsize) / 1e9)).toBeLessThan(2);
});

test.each([
  [
    "/no/such",
    "skip: Not checked: /no/such is not known to be on this computer. A container can look as soon as the first create has built a node image.",
  ],
  [
    "",
    "skip: Not checked: its folder is not known to be on this computer. A container can look as soon as the first create has built a node image.",
  ],
])("the space of an engine whose folder is %j isn't judged", async (rootFolder, expected) => {
  expect(outcomeText(await judged("image space", { told: { rootFolder } }))).toBe(expected);
});

test.skipIf(process.platform !== "linux")(
  "this computer is looked at for an engine on it, however nodes are reached",
  async () => {
    const told = { location: "here", isRootless: true, rootFolder: "/tmp" } as const;
    for (const name of ["image space", "inotify"])
      expect((await judged(name, { told, reach: "engine" })).status).not.toBe("skip");
  },
);

test("what the engine says is quoted as one line without escape sequences, and marked", async () => {
  await using scratch = await scratchFolder();
  const hostile = "x\u001B[2J\n::error::y";
  const rootFolder = join(scratch.path, hostile);
  await mkdir(rootFolder, { recursive: true });
  const told = { rootFolder, storageDriver: hostile };
  for (const outcome of [
    await judged("image space", { told }),
    await judged("image space", { told: { rootFolder: `/no/such/${hostile}` } }),
    await judged("storage driver", { told }),
  ]) {
    expect(outcome.message).toContain("x\uFFFD[2J : :error::y\uFDD1");
    expect(outcome.message).not.toMatch(/\p{Cc}/u);
  }
});

test.skipIf(process.platform !== "linux")(
  "an engine without space can't build images, and the remedy frees some",
  async () => {
    // The kernel's own file system has no space at all.
    expect(outcomeText(await judged("image space", { told: { rootFolder: "/proc" } }))).toBe(
      "fail: /proc has 0.0 GB free, but images and nodes may need 5 GB. → " +
        "Free some space: destroy clusters that you no longer need, or remove images without a name with: docker image prune. Don't use system prune or volume prune: they remove stopped clusters and snapshots.",
    );
  },
);

test.each([
  ["direct", "own addresses: because"],
  ["engine", "through Docker: because"],
  [
    "unknown",
    "Not known: because. Nodes are reached at the containers' own addresses if Docker runs on this computer, else through it.",
  ],
] as const)("how nodes are reached is said, or that it isn't known: %s", async (reach, words) => {
  expect((await judged("node addresses", { reach })).message).toContain(words);
});

test.each([
  ["2", "direct", "pass: Version 2: nodes run debian-12 by default"],
  ["2", "engine", "pass: Version 2: nodes run debian-12 by default"],
] as const)(
  "control groups of version %s, nodes reached %s: %s",
  async (cgroupVersion, reach, expected) => {
    expect(outcomeText(await judged("cgroups", { told: { cgroupVersion }, reach }))).toBe(expected);
  },
);

test("the check of control groups says which limits nodes can't have", async () => {
  const told = { cgroupVersion: "2", idleLimits: ["cpus"] } as const;
  expect(outcomeText(await judged("cgroups", { told }))).toBe(
    "pass: Version 2: nodes run debian-12 by default; `cpus` cannot be limited",
  );
});

const seen = "space overlay  264212084 32285132  74105780      31% /\ninotify 128\nsystemd no\n";

test("what an engine elsewhere has is what a container sees there, not what this computer has", async () => {
  const elsewhere = { reach: "engine", machine: readMachine(seen) } as const;
  // This folder is here too, and says nothing about the engine's.
  const told = { cgroupVersion: "1", rootFolder: "/proc" } as const;
  const outcomes = ["image space", "cgroups", "inotify"].map(async (name) =>
    outcomeText(await judged(name, { ...elsewhere, told })),
  );
  expect(await Promise.all(outcomes)).toEqual([
    "pass: Docker's store of images has 75.8 GB free",
    expect.stringContaining("fail: The engine's computer has cgroups 1 without /sys/fs/cgroup/sys"),
    expect.stringContaining("warn: 128 inotify instances"),
  ]);
});

test.each(["image space", "cgroups", "inotify", "memory"])(
  "%s of an engine elsewhere that shows nothing doesn't count as fine",
  async (name) => {
    for (const machine of [undefined, readMachine(""), readMachine("space a b c d%\ninotify -1")]) {
      const told = { cgroupVersion: "1", rootFolder: "/", memoryBytes: 0 } as const;
      const outcome = await judged(name, { reach: "engine", told, ...(machine && { machine }) });
      expect(outcome.status).toBe("skip");
    }
  },
);

test("Podman's container that looks has no limit of processes, whose controller may be missing", async () => {
  const looked: (readonly string[])[] = [];
  const engine = {
    kind: engineKinds.podman,
    ask: async ({ words }: { readonly words: readonly string[] }) => {
      if (words[0] === "images") return Promise.resolve("localhost/cluster-e2e-node:0123");
      looked.push(words);
      return Promise.resolve(seen);
    },
  } as unknown as Engine;
  expect(await lookAtMachine(engine, neverAborted)).toEqual(readMachine(seen));
  expect(looked).toEqual([expect.arrayContaining(["run", "--pids-limit=0"])]);
});

test("images in containerd's store are not in the engine's folder", async () => {
  const told = { rootFolder: "/proc", hasContainerdStore: true };
  const outcome = await judged("image space", { told, machine: readMachine(seen) });
  expect(outcome.message).toBe("Docker's store of images has 75.8 GB free");
});

test("inotify of this computer is looked at here", async () => {
  const limit = Number(await Bun.file("/proc/sys/fs/inotify/max_user_instances").text());
  expect((await judged("inotify", {})).status).toBe(limit >= 256 ? "pass" : "warn");
});

test.each([
  ["256\n", "pass: 256 instances per user"],
  [
    "128\n",
    "warn: 128 inotify instances per user are enough for only about 21 nodes. → " +
      "Allow more:\n    sudo sysctl fs.inotify.max_user_instances=1024",
  ],
  [
    undefined,
    "skip: Not checked: cannot read /proc/sys/fs/inotify/max_user_instances. A container can look as soon as the first create has built a node image.",
  ],
  [
    "junk",
    "skip: Not checked: cannot read /proc/sys/fs/inotify/max_user_instances. A container can look as soon as the first create has built a node image.",
  ],
])("where the kernel's limit of inotify instances is %j: %s", (instances, expected) => {
  expect(outcomeText(judgeInotify(instances))).toBe(expected);
});

test("without an engine all of them are skipped", async () => {
  const missing = () => Promise.reject(new ClusterError("machine-not-set-up", "no engine"));
  const facts = {
    engine: missing,
    engineFacts: missing,
    way: missing,
  } as unknown as ContainerFacts;
  const outcomes = await Promise.all(hostChecks(facts).map((check) => check.run(neverAborted)));
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["skip"]));
});

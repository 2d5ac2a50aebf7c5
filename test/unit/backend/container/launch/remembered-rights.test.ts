import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { rememberedRights } from "../../../../../src/backend/container/launch/system-flags.ts";
import { ClusterError, type ErrorId } from "../../../../../src/errors.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

interface ScriptedEngine {
  /** What its bridge is; another one each time that Docker is started. */
  readonly bridge: string;
  readonly allows: boolean;
  /** What it fails with where it doesn't allow. */
  readonly failure?: ErrorId;
  /** What a container that it allows prints of its users and groups. */
  readonly maps?: string;
}

/** As root's containers have them. */
const allUsers = `         0          0 4294967295\n\n         0          0 4294967295`;

/** Counts what is tried. */
function engineOf(
  { bridge, allows, failure = "engine-failed", maps = allUsers }: ScriptedEngine,
  kind = engineKinds.docker,
  says: object = {},
) {
  const tried: string[] = [];
  const tryRun = async (words: readonly string[]): Promise<string> => {
    tried.push(words.join(" "));
    return allows
      ? Promise.resolve(maps)
      : Promise.reject(new ClusterError(failure, "operation not permitted"));
  };
  const engine: Engine = {
    kind,
    option: "",
    ask: async () => Promise.reject(new Error("nothing is asked")),
    read: () => {
      throw new Error("nothing is read");
    },
    defer: async () => ({ run: async () => Promise.reject(new Error("nothing is deferred")) }),
    change: async ({ words }) => tryRun(words),
  };
  const facts = kind.readFacts(says);
  const usual = kind.readNetwork(bridge === "" ? undefined : { Id: bridge, id: bridge });
  const isPrivileged = async (memory: string): Promise<boolean> =>
    (await rememberedRights(engine, { facts, image: "debian", memory, usual })).isPrivileged;
  return { tried, isPrivileged };
}

test("what containers are allowed is tried once for each start of the engine", async () => {
  await using folder = await scratchFolder();
  const memory = join(folder.path, "memory");
  const first = engineOf({ bridge: "one", allows: false });
  expect([await first.isPrivileged(memory), await first.isPrivileged(memory)]).toEqual([
    false,
    false,
  ]);
  expect(first.tried).toEqual([
    expect.stringMatching(
      /^run --rm --init=false \S+ --privileged --network=none --entrypoint=\/bin\/sh debian -c .*uid_map/,
    ),
    expect.stringContaining(
      " --cap-add=SYS_BOOT --device=/dev/fuse --device=/dev/net/tun --device-cgroup-rule=b 7:* rmw ",
    ),
    expect.stringContaining(
      " --cap-add=SYS_BOOT --device=/dev/fuse --device=/dev/net/tun --network",
    ),
    expect.stringMatching(/^(?!.*SYS_BOOT).* --device=\/dev\/fuse --device=\/dev\/net\/tun /),
    expect.stringMatching(/^(?!.*(?:SYS_BOOT|--device)).* --cap-add=NET_RAW /),
    expect.stringMatching(/^(?!.*NET_RAW).* --cap-add=NET_ADMIN /),
  ]);
  const restarted = engineOf({ bridge: "two", allows: true });
  expect([await restarted.isPrivileged(memory), await restarted.isPrivileged(memory)]).toEqual([
    true,
    true,
  ]);
  expect(restarted.tried).toHaveLength(1);
});

test("it is tried each time where the engine's run has no name, nothing can be kept, or what was kept is torn", async () => {
  await using folder = await scratchFolder();
  const memory = join(folder.path, "memory");
  const unnamed = engineOf({ bridge: "", allows: true });
  expect([await unnamed.isPrivileged(memory), await unnamed.isPrivileged(memory)]).toEqual([
    true,
    true,
  ]);
  expect(unnamed.tried).toHaveLength(2);
  const podman = engineOf({ bridge: "one", allows: true }, engineKinds.podman);
  expect([await podman.isPrivileged(memory), await podman.isPrivileged(memory)]).toEqual([
    true,
    true,
  ]);
  expect(podman.tried).toHaveLength(2);
  const unkept = engineOf({ bridge: "one", allows: true });
  const nowhere = join(folder.path, "missing", "memory");
  expect([await unkept.isPrivileged(nowhere), await unkept.isPrivileged(nowhere)]).toEqual([
    true,
    true,
  ]);
  expect(unkept.tried).toHaveLength(2);
  await writeFile(memory, '{"run":"one","wor');
  expect(await unkept.isPrivileged(memory)).toBe(true);
  expect(unkept.tried).toHaveLength(3);
});

test.each(["deadline-passed", "capacity-lacking", "machine-not-set-up"] as const)(
  "a trial that ends as %s tells nothing of what is allowed: it is thrown, and nothing is kept",
  async (failure) => {
    await using folder = await scratchFolder();
    const memory = join(folder.path, "memory");
    const troubled = engineOf({ bridge: "one", allows: false, failure });
    expect((await failureOf(troubled.isPrivileged(memory))).id).toBe(failure);
    const well = engineOf({ bridge: "one", allows: true });
    expect(await well.isPrivileged(memory)).toBe(true);
    expect(well.tried).toHaveLength(1);
  },
);

test("Podman's rights are tried without its own limit of processes, whose controller may be missing", async () => {
  await using folder = await scratchFolder();
  const { isPrivileged, tried } = engineOf({ bridge: "", allows: true }, engineKinds.podman);
  expect(await isPrivileged(join(folder.path, "memory"))).toBe(true);
  expect(tried).toEqual([expect.stringContaining("--pids-limit=0")]);
});

const rootlessDocker = { CgroupVersion: "2", SecurityOptions: ["name=rootless"] };
const ranges = (size: number): string => `0 1000 1\n         1     100000      ${size}`;

test.each([
  ["with few users", `${ranges(999)}\n\n${ranges(65_536)}`, 1_000],
  ["with few groups", `${ranges(65_536)}\n\n${ranges(9)}`, 10],
])(
  "containers of a rootless Docker %s are refused, and nothing is kept",
  async (_, maps, users) => {
    await using folder = await scratchFolder();
    const memory = join(folder.path, "memory");
    const scripted = { bridge: "one", allows: true, maps };
    const { isPrivileged, tried } = engineOf(scripted, engineKinds.docker, rootlessDocker);
    for (const count of [1, 2]) {
      const error = await failureOf(isPrivileged(memory));
      expect(error).toMatchObject({ id: "machine-not-set-up", facts: { users } });
      expect(error.hint).toContain("systemctl --user restart docker");
      expect(tried).toHaveLength(count);
    }
  },
);

test("containers of a rootless Docker with the usual ranges get their rights", async () => {
  await using folder = await scratchFolder();
  const maps = `${ranges(65_536)}\n\n${ranges(65_536)}`;
  const scripted = { bridge: "one", allows: true, maps };
  const { isPrivileged } = engineOf(scripted, engineKinds.docker, rootlessDocker);
  expect(await isPrivileged(join(folder.path, "memory"))).toBe(true);
});

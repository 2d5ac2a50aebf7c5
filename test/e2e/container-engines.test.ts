/**
 * Clusters in the engines that people have, and files that move between them. The table names each engine and its mode. Engines on another computer are in
 * container-remote, those of another container in container-in-container, those with cgroups 2 in container-cgroup2, and rootless ones in container-rootless.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { copyFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bareOptions, expectArrival, expectLife, succeed } from "./support/cluster-life.ts";
import { podmanLack } from "./support/container-engine.ts";
import {
  type EnginePlace,
  newerEngine,
  ownDocker,
  ownPodman,
  rootlessPodman,
} from "./support/engine-places.ts";
import { newerLack } from "./support/newer-engines.ts";
import { computerLack } from "./support/second-computer.ts";
import { startTestContainers, type TestContainers } from "./support/test-containers.ts";

const state: { here?: TestContainers } = {};
const here = (): TestContainers => state.here!;

beforeAll(async () => {
  state.here = await startTestContainers();
  const id = here().id("source");
  await succeed(here(), `create -c ${id} --agents 0 --public-agents 0 ${bareOptions}`);
  await writeFile(join(here().folder, "sent"), "here");
  await succeed(here(), `cp ${here().folder}/sent master_0:/root/sent -c ${id}`);
  await succeed(here(), `snapshot create s -c ${id}`);
  await succeed(here(), `snapshot save s ${here().folder}/here.zst -c ${id}`);
  await succeed(here(), `destroy -c ${id} --yes`);
});
afterAll(async () => {
  await state.here?.[Symbol.asyncDispose]();
});

/** With these, Docker makes other containers unless it is told what to make. */
const oddDefaults = ["--init", "--no-new-privileges", "--log-driver=none"];
const oddPodmanDefaults = `init = true
pids_limit = 64
log_driver = "none"
cgroupns = "host"
ipcns = "host"
pidns = "host"
utsns = "host"`;
const store = { features: { "containerd-snapshotter": true } };

interface Row {
  /** What it says of its version: its least release and what else is expected of it. */
  readonly version: RegExp;
  readonly lack: string | undefined;
  readonly start: () => Promise<EnginePlace>;
}

const rows: Readonly<Record<string, Row>> = {
  "this computer's Docker, with odd defaults": {
    version: /\b\d+\./,
    lack: computerLack,
    start: async () => ownDocker(oddDefaults),
  },
  "this computer's Podman, with odd defaults": {
    version: /\b\d+\./,
    lack: podmanLack,
    start: async () => ownPodman(oddPodmanDefaults),
  },
  "Docker of Debian 13": {
    version: /^(?:2[6-9]|[3-9]\d)\..* overlay2$/,
    lack: newerLack,
    start: async () => newerEngine("docker", "trixie"),
  },
  "Docker of Debian 13, with containerd's image store": {
    version: /^(?:2[6-9]|[3-9]\d)\..* overlayfs$/,
    lack: newerLack,
    start: async () => newerEngine("docker", "trixie", store),
  },
  "Podman of Debian 13": {
    version: /^[5-9]\./,
    lack: newerLack,
    start: async () => newerEngine("podman", "trixie"),
  },
  "Docker of Debian's unstable": {
    version: /^(?:2[89]|[3-9]\d)\./,
    lack: newerLack,
    start: async () => newerEngine("docker", "sid"),
  },
  "Podman of Debian's unstable": {
    version: /^[5-9]\./,
    lack: newerLack,
    start: async () => newerEngine("podman", "sid"),
  },
};

const versionOf = ({ engine }: EnginePlace): Promise<string> =>
  engine(["info", "--format={{.ServerVersion}} {{.Driver}}"]).catch(async () =>
    engine(["version", "--format={{.Client.Version}}"]),
  );

for (const [name, { version, lack, start }] of Object.entries(rows))
  test.skipIf(lack !== undefined)(
    `${name}: a cluster lives there, and files move both ways (${lack ?? "as root"})`,
    async () => {
      await using place = await start();
      expect(await versionOf(place)).toMatch(version);
      await expectLife(place, "one");
      await expectArrival(here(), join(place.folder, "one.zst"), ["one", here().id("moved")]);
      await copyFile(join(here().folder, "here.zst"), join(place.folder, "here.zst"));
      await expectArrival(place, `${place.path}/here.zst`, ["here", "moved"]);
    },
  );

interface Refusal {
  readonly lack: string | undefined;
  readonly start: () => Promise<EnginePlace>;
  readonly reason: string;
}

const remap = { "userns-remap": "default" };
const refusals: Readonly<Record<string, Refusal>> = {
  "this computer's Docker with userns-remap": {
    lack: computerLack,
    start: async () => ownDocker(["--userns-remap=nobody:nogroup"]),
    reason: "userns-remap",
  },
  "Docker of Debian 13 with userns-remap": {
    lack: newerLack,
    start: async () => newerEngine("docker", "trixie", remap),
    reason: "userns-remap",
  },
  "this computer's rootless Podman": {
    lack:
      podmanLack ??
      (existsSync("/sys/fs/cgroup/cgroup.controllers")
        ? "skipped: it works under cgroups 2"
        : undefined),
    start: rootlessPodman,
    reason: "rootless under cgroups 1",
  },
};

for (const [name, { lack, start, reason }] of Object.entries(refusals))
  test.skipIf(lack !== undefined)(
    `${name}: refused with the reason, before anything is made (${lack ?? "as root"})`,
    async () => {
      await using place = await start();
      const ended = await place.run(["create", "example:bare"]);
      expect(ended).toMatchObject({ status: 5, stdout: "" });
      expect(ended.stderr).toContain(reason);
      expect((await place.run(["doctor"])).stdout).toContain(reason);
      expect(await place.engine(["ps", "--all", "--quiet"])).toBe("");
    },
  );

/** Faults of this computer: of its folders, its disk, its clock, and of what starts the program. */
import { mkdir, readdir, rm, truncate } from "node:fs/promises";
import { join } from "node:path";
import { type Ended, executablePath } from "../../e2e/support/executable.ts";
import type { Expected, Fault, Struck } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { answering, created, duringTheFault, failed, struck } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const lacksRoot = process.getuid?.() === 0 ? undefined : "only root mounts file systems";

/** The creation, started by a line of shell that ends with `exec "$0" "$@"`. */
const startedBy =
  (line: string) =>
  async (world: CloudWorld): Promise<Ended> => {
    const child = Bun.spawn(
      ["sh", "-c", line, executablePath("cluster-cloud"), ...world.createWords],
      {
        cwd: world.folder,
        env: { PATH: process.env["PATH"], ...world.environment },
        stdio: ["ignore", "pipe", "pipe"],
        timeout: 60_000,
      },
    );
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    await child.exited;
    return {
      status: child.exitCode ?? undefined,
      signal: child.signalCode === null ? undefined : String(child.signalCode),
      stdout,
      stderr,
    };
  };

/** A small file system in place of a folder. */
const mounted =
  (folder: (world: CloudWorld) => string, options: string, isFull: boolean) =>
  async (world: CloudWorld): Promise<Struck> => {
    const path = folder(world);
    await mkdir(path, { recursive: true });
    await Bun.$`mount -t tmpfs -o ${options} tmpfs ${path}`.quiet();
    if (isFull) await Bun.$`dd if=/dev/zero of=${join(path, "full")} bs=4k`.quiet().nothrow();
    return struck(async () => {
      await Bun.$`umount ${path}`.quiet();
      await rm(path, { recursive: true });
      await mkdir(path);
    });
  };

const state = ({ stateFolder }: CloudWorld): string => stateFolder;
const temporary = ({ temporaryFolder }: CloudWorld): string => temporaryFolder;
const notSetUp = (says: string | RegExp): Expected => failed("machine-not-set-up", says, 5);

const disks: readonly CloudFault[] = [
  {
    name: "the state folder's disk is full",
    place: "computer",
    lack: lacksRoot,
    strike: mounted(state, "size=64k", true),
    expected: notSetUp(/ENOSPC|no space/),
  },
  {
    name: "the state folder is read-only",
    place: "computer",
    lack: lacksRoot,
    strike: mounted(state, "size=64k,ro", false),
    expected: notSetUp(/EROFS|read-only/),
  },
  {
    name: "the state folder's disk has no inodes left",
    place: "computer",
    lack: lacksRoot,
    strike: mounted(state, "nr_inodes=3", false),
    expected: notSetUp(/ENOSPC|no space/),
  },
  {
    name: "the temporary folder is read-only",
    place: "computer",
    lack: lacksRoot,
    strike: mounted(temporary, "size=64k,ro", false),
    expected: notSetUp("Cannot write to the folder"),
  },
];

/** Creations check beforehand that there is room. */
const packOnFullDisk: CloudFault = {
  name: "the disk is full, then pack",
  place: "computer",
  lack: lacksRoot,
  strike: mounted(({ folder }) => join(folder, "out"), "size=64k", true),
  act: async (world) => {
    await world.run(["examples", "etcd", "meter"]);
    const ended = await world.run(["pack", "--output-file", join("out", "meter.sh"), "meter"]);
    await rm(join(world.folder, "meter"), { recursive: true });
    return ended;
  },
  expected: notSetUp(/Cannot write .*no space/),
};

const readOnlyWithCluster: CloudFault = {
  name: "the state folder is read-only, then run",
  place: "computer",
  lack: lacksRoot,
  needsCluster: true,
  strike: async (world) => {
    const path = state(world);
    await Bun.$`mount --bind ${path} ${path} && mount -o remount,bind,ro ${path}`.quiet();
    return struck(async () => Bun.$`umount ${path}`.quiet());
  },
  act: async (world) => world.run(["run", "-c", "faulty", "--no-test-env", "true"]),
  expected: { status: 0, says: ["cannot write the log: EROFS"], keepsCluster: true },
};

const folders: readonly CloudFault[] = [
  {
    name: "the state folder is a file",
    place: "computer",
    act: async (world) => {
      await Bun.write(join(world.folder, "file"), "");
      return world.run(world.createWords, {
        environment: { XDG_STATE_HOME: join(world.folder, "file") },
      });
    },
    expected: notSetUp("XDG_STATE_HOME"),
  },
  {
    name: "the state folder is relative",
    place: "computer",
    act: duringTheFault({ XDG_STATE_HOME: "state" }),
    expected: notSetUp("XDG_STATE_HOME"),
  },
  {
    name: "the state folder is in /proc",
    place: "computer",
    act: duringTheFault({ XDG_STATE_HOME: "/proc/nowhere" }),
    expected: notSetUp("XDG_STATE_HOME"),
  },
  {
    name: "the temporary folder is missing",
    place: "computer",
    act: duringTheFault({ TMPDIR: "/nowhere" }),
    expected: notSetUp("TMPDIR"),
  },
  { name: "no home", place: "computer", act: duringTheFault({ HOME: "" }), expected: created },
  {
    name: "the working folder is gone",
    place: "computer",
    act: startedBy('mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"'),
    expected: notSetUp(/The current folder was removed/),
  },
];

const starts: readonly CloudFault[] = [
  {
    name: "few open files",
    place: "computer",
    act: startedBy('ulimit -n 64 && exec "$0" "$@"'),
    expected: created,
  },
  {
    name: "no stdout",
    place: "computer",
    act: startedBy('exec "$0" "$@" >&-'),
    expected: { status: 1, id: "output-lost", says: ["Cannot write"], keepsCluster: true },
  },
  {
    name: "no stderr",
    place: "computer",
    act: startedBy('exec "$0" "$@" 2>&-'),
    expected: created,
  },
  { name: "no stdin", place: "computer", act: startedBy('exec "$0" "$@" <&-'), expected: created },
  {
    name: "stdout is full",
    place: "computer",
    act: startedBy('exec "$0" "$@" >/dev/full'),
    expected: {
      status: 1,
      id: "output-lost",
      says: ["no space left on device"],
      keepsCluster: true,
    },
  },
  {
    name: "stderr is full",
    place: "computer",
    act: startedBy('exec "$0" "$@" 2>/dev/full'),
    expected: created,
  },
  {
    name: "an empty PATH",
    place: "computer",
    act: duringTheFault({ PATH: "" }),
    expected: failed("machine-not-set-up", "There is no ssh on", 5),
  },
  {
    name: "a language without UTF-8",
    place: "computer",
    act: duringTheFault({ LC_ALL: "C", LANG: "C" }),
    expected: created,
  },
];

const clocks: readonly CloudFault[] = [3_600_000, -3_600_000].map((skewMs) => ({
  name: `this computer's clock is an hour ${skewMs > 0 ? "behind" : "ahead"}`,
  place: "computer",
  strike: async ({ cloud }) => {
    cloud.clock.skew(skewMs);
    return struck(() => cloud.clock.skew(0));
  },
  expected: created,
}));

const lingering = answering({ pattern: "artifact\\.sh --genconf", delayMs: 600_000 });

/** Ends the program in its configuration, then does something to the creation's folder. */
const crashed = (
  name: string,
  deed: (world: CloudWorld, path: (name: string) => string) => Promise<unknown>,
): CloudFault => ({
  name: `a crash, then ${name}`,
  place: "computer",
  seconds: 12,
  strike: lingering,
  act: async (world) => {
    const running = world.start(world.createWords);
    await running.said("Configure …");
    running.interrupt("SIGKILL");
    const ended = await running.ended;
    const place = join(world.stateFolder, "cluster-e2e/cloud/us-west-2");
    const [creation] = (await readdir(place)).filter((entry) => entry.startsWith("faulty-"));
    await deed(world, (entry) => join(place, creation!, entry));
    return ended;
  },
  expected: { status: "SIGKILL", says: [], keepsCluster: false },
});

const crashes: readonly CloudFault[] = [
  crashed("launches of 0 bytes", async (_, path) => {
    for (const name of await readdir(path("launches"))) await truncate(path(`launches/${name}`));
  }),
  crashed("launches that are no JSON", async (_, path) => {
    for (const name of await readdir(path("launches")))
      await Bun.write(path(`launches/${name}`), "{");
  }),
  crashed("a key of 0 bytes", async (_, path) => truncate(path("id_ed25519"))),
];

const signals = (["SIGTERM", "SIGHUP"] as const).map((signal): CloudFault => ({
  name: `${signal} during the configuration`,
  place: "computer",
  strike: lingering,
  act: async (world) => {
    const running = world.start(world.createWords);
    await running.said("Configure …");
    running.interrupt(signal);
    return running.ended;
  },
  expected: {
    status: signal,
    id: "interrupted",
    says: [signal, "Remove what was created: done"],
    keepsCluster: false,
  },
}));

export const computerFaults: readonly CloudFault[] = [
  ...disks,
  packOnFullDisk,
  readOnlyWithCluster,
  ...folders,
  ...starts,
  ...clocks,
  ...crashes,
  ...signals,
];

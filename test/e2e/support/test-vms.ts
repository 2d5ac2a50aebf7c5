/** `cluster-vm` with state and cache folders of the test, and a list of what it leaves. */
import { randomBytes } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type Ended, executablePath, repository } from "./executable.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { type TestBackend, testProgram } from "./test-backend.ts";

export interface TestVms extends TestBackend {
  readonly stateFolder: string;
  readonly templatesFolder: string;
  /** A cluster id that nobody else has. */
  id(name: string): string;
  /** Like `run`, on a computer whose kernel has counted a sleep. Only root can pretend that. */
  runAfterSleep(words: readonly string[]): Promise<Ended>;
  /** Process numbers of the cluster id's QEMUs, by its nodes; `network` is the one that connects them. */
  machines(clusterId: string): Promise<ReadonlyMap<string, number>>;
  /** The folder of a node's machine. */
  machineFolder(clusterId: string, node: string): Promise<string>;
  /** Disks and the like of the cluster id, from the state folder. */
  files(clusterId: string): Promise<readonly string[]>;
}

/** Path of the disk image that the tests' machines boot, built if it isn't there yet. */
export const buildVmImage = async (
  ...words: readonly ("--docker" | "--networkd" | "--debian-11")[]
): Promise<string> => make("test/vm-image/build", words);

/** The program for virtual machines on a computer with an ARM processor. */
export const armProgram: readonly string[] = [
  process.execPath,
  join(repository, "test", "support", "arm-vm-program.ts"),
];

/** Path of a disk image of Debian 13 as people have it. */
export const buildUsualImage = async (
  kind: "netplan" | "lvm" | "btrfs" | "arm64",
): Promise<string> => make("test/vm-image/usual", [kind]);

/** A folder for the PATH, in which QEMU is that of a newer Debian: 13, unless CLUSTER_E2E_VM_QEMU is `sid`. */
export const newerQemu = async (): Promise<string> =>
  make("test/vm-image/newer-qemu", [process.env["CLUSTER_E2E_VM_QEMU"] ?? "trixie"]);

async function make(script: string, words: readonly string[]): Promise<string> {
  const child = Bun.spawn([join(repository, script), ...words], { stdout: "pipe", stderr: "pipe" });
  const outputs = [new Response(child.stdout).text(), new Response(child.stderr).text()] as const;
  const [status, stdout, stderr] = await Promise.all([child.exited, ...outputs]);
  if (status !== 0) throw new Error(`${script} failed (${status}):\n${stderr}`);
  return stdout.trim();
}

const asleep = `mount -t tmpfs none /sys/power
mkdir /sys/power/suspend_stats
echo 1 >/sys/power/suspend_stats/success
exec "$0" "$@"`;

/** The program is that of the executable, or another one. */
export async function startTestVms(command?: readonly string[]): Promise<TestVms> {
  const folder = await temporaryFolder();
  const prefix = `e2e-${randomBytes(4).toString("hex")}`;
  const state = join(folder.path, "state");
  const cache = join(folder.path, "cache");
  const environment = {
    XDG_STATE_HOME: state,
    XDG_CACHE_HOME: cache,
    TMPDIR: folder.path,
    CI: "true",
  };
  const stateFolder = join(state, "cluster-e2e", "vm");
  const program = testProgram("cluster-vm", {
    environment,
    limitMs: 7_000_000,
    ...(command && { command }),
  });
  return {
    folder: folder.path,
    stateFolder,
    templatesFolder: join(cache, "cluster-e2e", "templates"),
    id: (name) => `${prefix}-${name}`,
    ...program,
    runAfterSleep: (words) =>
      program.run(words, {
        command: ["unshare", "--mount", "sh", "-ec", asleep, executablePath("cluster-vm")],
      }),
    machines: (clusterId) => machinesIn(join(stateFolder, `${clusterId}-`)),
    machineFolder: async (clusterId, node) => {
      const name = (await readdir(stateFolder)).find((each) => each.startsWith(`${clusterId}-`))!;
      return join(stateFolder, name, "machines", node);
    },
    files: async (clusterId) => {
      const names = await readdir(stateFolder, { recursive: true }).catch(() => []);
      return names.filter((name) => name.startsWith(`${clusterId}-`));
    },
    [Symbol.asyncDispose]: async () => {
      for (const pid of await pidsIn(folder.path)) process.kill(pid, "SIGKILL");
      await folder[Symbol.asyncDispose]();
    },
  };
}

const machinesIn = async (path: string): Promise<ReadonlyMap<string, number>> =>
  new Map(await processesIn(path));

/** Also those in other folders for the state, where nodes have the same names. */
const pidsIn = async (path: string): Promise<readonly number[]> =>
  (await processesIn(path)).map(([, pid]) => pid);

/** Which processes have a process file on their command line whose path begins so. */
async function processesIn(
  path: string,
): Promise<readonly (readonly [node: string, pid: number])[]> {
  const pids = (await readdir("/proc")).filter((name) => /^[0-9]+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid): Promise<readonly (readonly [string, number])[]> => {
      const words = (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).split("\0");
      const file = words[words.indexOf("-pidfile") + 1] ?? "";
      return file.startsWith(path) ? [[file.split("/").at(-2)!, Number(pid)]] : [];
    }),
  );
  return found.flat();
}

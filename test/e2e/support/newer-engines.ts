/** A computer with the Docker and the Podman of a newer Debian: a root folder, with mounts and a network of its own. */
import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../support/until.ts";
import { runEngine } from "./container-engine.ts";
import { type Ended, executablePath, repository, run } from "./executable.ts";
import { computerLack } from "./second-computer.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** Why there can be none here; undefined where there can. */
export const newerLack: string | undefined =
  computerLack ??
  ["debootstrap", "pivot_root"]
    .filter((program) => Bun.which(program) === null)
    .map((program) => `skipped: there is no ${program}`)[0];

export interface NewerComputer extends AsyncDisposable {
  /** The folder `/exchange` of that computer. */
  readonly folder: string;
  /** Runs `cluster-container` there, as the user with this number. */
  ask(words: readonly string[], user?: number): Promise<Ended>;
  /** Runs a program there; resolves with what it prints, and fails where it does. */
  program(...words: readonly string[]): Promise<string>;
}

/** What each of its programs gets, besides the name of the test's folder. */
const environment = [
  "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  "HOME=/exchange",
  "CI=true",
  "COLUMNS=10000",
];

// As in the tests' other Podman: this also works in containers, and without a systemd.
const podmanSettings =
  '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n';

/** `settings`: its Docker's `daemon.json`. */
export async function startNewerComputer(
  suite: "trixie" | "sid",
  settings: object,
): Promise<NewerComputer> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await temporaryFolder());
  const work = join(folder.path, "work");
  for (const name of ["root", "work", "lib"]) await mkdir(join(folder.path, name));
  await Bun.write(join(folder.path, "containers.conf"), podmanSettings);
  await Bun.write(join(folder.path, "daemon.json"), JSON.stringify(settings));
  await copyFile(executablePath("cluster-container"), join(folder.path, "cluster-container"));
  const made =
    await Bun.$`${join(repository, "test/machine-image/newer-engines")} ${suite}`.quiet();
  const holder = Bun.spawn(["unshare", "--mount", "--net", "sh", "-euc", mounts], {
    env: { PATH: process.env["PATH"]!, FOLDER: folder.path, MADE: made.text().trim() },
    stdin: "pipe",
    stdout: Bun.file(join(folder.path, "log")),
    stderr: Bun.file(join(folder.path, "log")),
  });
  stack.defer(async () => {
    holder.kill("SIGKILL");
    await holder.exited;
  });
  const enter = ["nsenter", `--target=${holder.pid}`, "--mount", "--net", "env", "-i"];
  // By the name of its folder, `scripts/test` finds what an interrupted test leaves running.
  const inside = [...enter, ...environment, `TEST_FOLDER=${folder.path}`];
  await until("the other root is there", async () => Bun.file(join(work, "ready")).exists());
  const program = (...words: readonly string[]): Promise<string> =>
    runEngine(inside[0]!, [...inside.slice(1), ...words], {});
  const log = Bun.file(join(folder.path, "dockerd.log"));
  const daemon = Bun.spawn([...inside, "dockerd", "--group=root"], { stdout: log, stderr: log });
  stack.defer(async () => {
    daemon.kill("SIGTERM");
    await daemon.exited;
  });
  await until("its Docker answers", async () => (await program("docker", "version")) !== "");
  stack.defer(async () => void (await program("podman", "rm", "--all", "--force", "--time=0")));
  const owned = stack.move();
  return {
    folder: work,
    ask: (words, user = 0) =>
      run("cluster-container", words, {
        environment: {},
        command: [...inside, "setpriv", `--reuid=${user}`, "--clear-groups", "cluster-container"],
      }),
    program,
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** The made root stays as it is: what is written lies in folders of the test. It ends when its stdin does. */
const mounts = `
mount --make-rprivate /
mount -t tmpfs tmpfs "$FOLDER/lib"
mkdir "$FOLDER/lib/upper" "$FOLDER/lib/work"
mount -t overlay overlay -o "lowerdir=$MADE,upperdir=$FOLDER/lib/upper,workdir=$FOLDER/lib/work" "$FOLDER/root"
cd "$FOLDER/root"
mkdir -p exchange usr/local/bin var/lib/docker var/lib/containers etc/containers etc/docker
mkdir -p "$FOLDER/docker" "$FOLDER/podman"
mount --bind "$FOLDER/work" exchange
mount --bind "$FOLDER/docker" var/lib/docker
mount --bind "$FOLDER/podman" var/lib/containers
cp "$FOLDER/cluster-container" usr/local/bin
cp "$FOLDER/containers.conf" etc/containers
cp "$FOLDER/daemon.json" etc/docker
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mkdir run/lock
ip link set lo up
pivot_root . mnt
umount -l mnt
touch exchange/ready
exec cat
`;

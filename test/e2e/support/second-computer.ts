/** A second computer for clusters of containers: a Docker, a network and a user of its own. */
import { chmod, chown, copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../support/until.ts";
import { runEngine } from "./container-engine.ts";
import { type Ended, type Running, executablePath, start } from "./executable.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** Debian's `nobody` and `nogroup`. */
export const user = 65_534;
/** Begins a command of theirs. */
const asUserWith = (groups: string): readonly string[] => [
  "setpriv",
  `--reuid=${user}`,
  `--regid=${user}`,
  groups,
];
export const asUser = asUserWith("--clear-groups");
/** Nobody here is in it: whoever may open a Docker's socket can become root. */
const socketGroup = 54_321;
const needed = ["dockerd", "unshare", "nsenter", "setpriv", "ip"];

/** Why there can be none here; undefined where there can. */
export const computerLack: string | undefined =
  process.getuid?.() === 0
    ? needed
        .filter((program) => Bun.which(program) === null)
        .map((program) => `skipped: there is no ${program}`)[0]
    : "skipped: a second Docker needs root";

export interface SecondComputer extends AsyncDisposable {
  /** A folder of its user. */
  readonly home: string;
  run(words: readonly string[]): Promise<Ended>;
  start(words: readonly string[]): Running;
  docker(words: readonly string[]): Promise<string>;
  /** Gives its user a copy of a file, and returns its path. */
  receive(path: string, name: string): Promise<string>;
}

/** A Docker with a network of its own, whose containers' addresses lead nowhere from here. */
export interface SecondDocker extends AsyncDisposable {
  readonly socket: string;
  readonly processId: number;
  docker(words: readonly string[]): Promise<string>;
}

/** With a range of ids for `userns-remap`, which this computer's users need not have. */
const surroundings = `
ip link set lo up
case " $*" in *" --userns-remap="*)
  printf '%s:200000:65536\\n' nobody nogroup >"$0"
  for file in /etc/subuid /etc/subgid; do mount --bind "$0" "$file"; done ;;
esac
exec "$@"`;

/** `more`: further options of its daemon. */
export async function startSecondDocker(
  folder: string,
  more: readonly string[] = [],
): Promise<SecondDocker> {
  const at = (name: string): string => join(folder, name);
  const host = `unix://${at("docker.sock")}`;
  const places = [
    `--data-root=${at("data")}`,
    `--exec-root=${at("exec")}`,
    `--pidfile=${at("pid")}`,
    `--host=${host}`,
  ];
  const daemon = ["dockerd", ...places, `--group=${socketGroup}`, "--shutdown-timeout=1", ...more];
  const log = Bun.file(at("log"));
  const child = Bun.spawn(
    ["unshare", "--net", "--mount", "sh", "-c", surroundings, at("ids"), ...daemon],
    {
      stdout: log,
      stderr: log,
    },
  );
  const docker = async (words: readonly string[]): Promise<string> =>
    runEngine("docker", words, { DOCKER_HOST: host });
  const dispose = async (): Promise<void> => {
    child.kill("SIGTERM");
    await child.exited;
  };
  try {
    await until("the second Docker answers", async () =>
      docker(["version"]).then(
        () => true,
        () => false,
      ),
    );
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    socket: at("docker.sock"),
    processId: child.pid,
    docker,
    [Symbol.asyncDispose]: dispose,
  };
}

export async function startSecondComputer(): Promise<SecondComputer> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await temporaryFolder());
  await chmod(folder.path, 0o755);
  const at = (name: string): string => join(folder.path, name);
  const home = at("home");
  await mkdir(home);
  await chown(home, user, user);
  // The repository may be in a folder that only root can open.
  await copyFile(executablePath("cluster-container"), at("cluster-container"));
  const { docker, processId, socket } = stack.use(await startSecondDocker(folder.path));
  const network = `--net=/proc/${processId}/ns/net`;
  const itsUser = asUserWith(`--groups=${socketGroup}`);
  const command = ["nsenter", network, ...itsUser, at("cluster-container")];
  const own = {
    DOCKER_HOST: `unix://${socket}`,
    HOME: home,
    XDG_STATE_HOME: join(home, "state"),
    TMPDIR: home,
    CI: "true",
  };
  const begin = (words: readonly string[]): Running =>
    start("cluster-container", words, { environment: own, command, cwd: home });
  const owned = stack.move();
  return {
    home,
    run: async (words) => begin(words).ended,
    start: begin,
    docker,
    receive: async (path, name) => {
      const received = join(home, name);
      await copyFile(path, received);
      await chown(received, user, user);
      return received;
    },
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

/** The container engines of the tests, each as a program with its own environment. */
import { randomInt } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";

/** A Debian that has none of a platform's packages. The local cloud's machines are made of such images as well: no registry is needed. */
export const bareNodeImage = "localhost/cluster-e2e-machine:debian-12";
/** The same with the sample platform's packages, which an installation then needn't unpack. */
export const nodeImage = `${bareNodeImage}-sample-platform`;

export interface ContainerEngine extends AsyncDisposable {
  readonly name: "docker" | "podman";
  /** What makes programs use this engine, and nothing else of the machine's. */
  readonly environment: Readonly<Record<string, string>>;
  /** Runs one of its commands; resolves with what it prints, and fails where it does. */
  run(words: readonly string[]): Promise<string>;
}

/** This machine's Docker. */
export const dockerEngine: ContainerEngine = {
  name: "docker",
  environment: {},
  run: async (words) => runEngine("docker", words, {}),
  [Symbol.asyncDispose]: async () => {},
};

/** Why tests of Podman can't run here; undefined where they can. */
export const podmanLack: string | undefined = findPodmanLack();

function findPodmanLack(): string | undefined {
  if (process.getuid?.() !== 0) return "skipped: Podman needs root";
  if (Bun.which("podman") === null) return "skipped: there is no Podman";
  const version = Bun.spawnSync(["podman", "--version"]).stdout.toString();
  return Number(/\d+/.exec(version)?.[0]) >= 4
    ? undefined
    : "skipped: this Podman is older than 4.0";
}

/**
 * A Podman all of whose images, containers and networks lie in `folder` (and, while they run, in a folder of `/run`),
 * with one of Docker's images. runc and the control groups' file system are what also works inside of containers and
 * without a systemd. If `image` is empty, it has none. `defaults`: lines of `containers.conf` about every container.
 */
export async function startPodman(
  folder: string,
  image: string,
  defaults = "",
): Promise<ContainerEngine> {
  const path = (name: string): string => join(folder, name);
  for (const part of ["images", "tmp", "networks"]) await mkdir(path(part), { recursive: true });
  // Where this path is long, conmon 2.1 doesn't tell Podman of a container's end, which Podman then waits 20 s for.
  const runFolder = await mkdtemp("/run/cluster-e2e-podman-");
  await Bun.write(
    path("storage.conf"),
    `[storage]\ndriver = "overlay"\ngraphroot = "${path("images")}"\nrunroot = "${runFolder}"\n`,
  );
  // Another Podman of a test, which knows nothing of this one, may make networks on this computer at the same moment.
  const range = `10.${randomInt(100, 200)}.0.0/16`;
  await Bun.write(
    path("containers.conf"),
    `[containers]\n${defaults}\n[network]\nnetwork_backend = "netavark"\nnetwork_config_dir = "${path("networks")}"\n` +
      `default_subnet_pools = [{ base = "${range}", size = 24 }]\n` +
      `[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\ntmp_dir = "${path("tmp")}"\n`,
  );
  const environment = {
    CONTAINERS_STORAGE_CONF: path("storage.conf"),
    CONTAINERS_CONF: path("containers.conf"),
  };
  const engine: ContainerEngine = {
    name: "podman",
    environment,
    run: async (words) => runEngine("podman", words, environment),
    [Symbol.asyncDispose]: async () => {
      await runEngine("podman", ["rm", "--all", "--force", "--volumes", "--time=0"], environment);
      await runEngine("podman", ["network", "prune", "--force"], environment);
      await rm(runFolder, { recursive: true, force: true });
    },
  };
  if (image === "") return engine;
  const loaded = await Bun.$`docker save ${image} | podman load`
    .env({ ...process.env, ...environment })
    .text();
  // Docker leaves the registry out of the name, and Podman adds its own.
  const name = /^Loaded image: (\S+)$/m.exec(loaded)?.[1] ?? "";
  if (name !== image) await runEngine("podman", ["tag", name, image], environment);
  return engine;
}

export async function runEngine(
  program: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<string> {
  const env = { ...process.env, ...environment };
  const child = Bun.spawn([program, ...words], { stdout: "pipe", stderr: "pipe", env });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if (status !== 0)
    throw new Error(`${program} ${words.join(" ")} ended with ${status}: ${stderr}`);
  return stdout.trim();
}

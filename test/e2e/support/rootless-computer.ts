/**
 * A computer with rootless engines of a release of Debian: a container with a systemd and the cgroups 2 of this computer, without their controllers where this
 * computer has them in cgroups 1.
 */
import { chmod, copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { until } from "../../support/until.ts";
import { filesIn, type LifePlace, thingsIn, unlimitedOptions } from "./cluster-life.ts";
import { bareNodeImage, runEngine } from "./container-engine.ts";
import { executablePath, repository, run } from "./executable.ts";
import { temporaryFolder } from "./temporary-folder.ts";

export interface RootlessComputer extends AsyncDisposable {
  /** Runs a line of shell there, as its user or as root; resolves with what it prints, and fails where it does. */
  shell(user: "e2e" | "root", line: string): Promise<string>;
  /** A place of its user's clusters. */
  place(engine: "docker" | "podman"): LifePlace;
}

/** Why there can be none here; undefined where there can. */
export const rootlessLack: string | undefined =
  process.getuid?.() === 0 ? undefined : "skipped: a computer of its own needs root";

const rights = [
  "--cap-add=SYS_ADMIN",
  "--cap-add=NET_ADMIN",
  "--security-opt=seccomp=unconfined",
  "--security-opt=apparmor=unconfined",
  "--security-opt=systempaths=unconfined",
  "--device=/dev/net/tun",
  "--tmpfs=/run",
  "--tmpfs=/tmp",
  // An engine's layers can't be on top of this computer's.
  "--volume=/home",
];
const begin = `
umount -R /sys/fs/cgroup
mount -t cgroup2 none /sys/fs/cgroup || exit
mkdir -p /home/e2e
chown e2e: /home/e2e
chmod 666 /dev/net/tun
exec /sbin/init`;

const variables = ["CI=true", "COLUMNS=10000", "HOME=/home/e2e", "XDG_RUNTIME_DIR=/run/user/1000"];

export async function startRootlessComputer(release: "12" | "13"): Promise<RootlessComputer> {
  await using stack = new AsyncDisposableStack();
  // Its user writes to it, who has another number here. Nobody else here gets through the folder above.
  const path = join(stack.use(await temporaryFolder()).path, "shared");
  await mkdir(path);
  const build = join(repository, "test/machine-image/rootless");
  const [image, nodes] = [
    await Bun.$`${build} ${release}`.text(),
    await Bun.$`${build} nodes`.text(),
  ];
  await copyFile(executablePath("cluster-container"), join(path, "cluster-container"));
  await Bun.$`docker save --output ${join(path, "nodes.tar")} ${nodes.trim()}`;
  await chmod(path, 0o777);
  await chmod(join(path, "nodes.tar"), 0o644);
  const docker = (words: readonly string[]): Promise<string> => runEngine("docker", words, {});
  const folder = `--volume=${path}:${path}`;
  const system = ["--detach", "--cgroupns=private", "--stop-signal=SIGRTMIN+3", ...rights, folder];
  const command = ["--entrypoint=/bin/sh", image.trim(), "-c", begin];
  const id = await docker(["run", ...system, ...command]);
  stack.defer(async () => void (await docker(["rm", "--force", "--volumes", id])));
  const as = (user: string): readonly string[] => [
    "exec",
    `--user=${user}`,
    `--workdir=${path}`,
    ...variables.map((each) => `--env=${each}`),
    id,
  ];
  const shell: RootlessComputer["shell"] = (user, line) => docker([...as(user), "sh", "-ec", line]);
  const succeeds = (user: "e2e" | "root", line: string): Promise<boolean> =>
    shell(user, line).then(
      () => true,
      () => false,
    );
  await until("its systemd runs", async () => succeeds("root", "loginctl enable-linger e2e"));
  // Without its user's systemd, the tool takes another way. It gives the daemon three seconds to answer, and can be called again.
  await until("Docker is set up", async () =>
    succeeds("e2e", "systemctl --user show-environment && dockerd-rootless-setuptool.sh install"),
  );
  await shell(
    "e2e",
    `docker context use rootless
for engine in docker podman; do
  $engine load --quiet --input nodes.tar
  $engine tag ${nodes.trim()} ${bareNodeImage}
done`,
  );
  const owned = stack.move();
  return {
    shell,
    place: (engine) => ({
      path,
      ...filesIn(path),
      options: unlimitedOptions,
      run: ([name = "", ...words]) =>
        run("cluster-container", [name, `--engine=${engine}`, ...words], {
          environment: {},
          command: ["docker", ...as("e2e"), "./cluster-container"],
        }),
      things: async () => thingsIn((words) => docker([...as("e2e"), engine, ...words])),
    }),
    [Symbol.asyncDispose]: () => owned[Symbol.asyncDispose](),
  };
}

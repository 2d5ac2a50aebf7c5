/** A container with a minimal Debian system, in which only what a test starts runs. It has no curl, xz or ssh. */
import type { ShellEnded } from "./shell.ts";
import { shell, tryShell } from "./shell.ts";

export interface BareContainer extends AsyncDisposable {
  /** Runs lines with `sh -eu`, with the environment given. */
  run(lines: string, environment?: Readonly<Record<string, string>>): Promise<ShellEnded>;
}

/** test/machine-image/build leaves it. */
const image = "localhost/cluster-e2e-bare:debian-12";

/** Whether the container's apt-get cannot do what it is asked for, and why; undefined where it can. */
export async function mirrorLack(): Promise<string | undefined> {
  const line =
    'docker run --rm --network host "$0" apt-get -qq -o APT::Update::Error-Mode=any update';
  const { status } = await tryShell(line, [image], "/");
  return status === 0 ? undefined : "Debian's package mirror cannot be reached";
}

/** Sees this machine's network, for what is served on loopback here. Its folder /small has 100 MB of space. */
export async function startContainer(mount: string): Promise<BareContainer> {
  const flags = [
    "--detach",
    "--rm",
    "--network",
    "host",
    "--volume",
    `${mount}:${mount}:ro`,
    "--tmpfs",
    "/small:size=100m,exec",
  ];
  const id = (
    await shell('docker run "$@"', ["docker", ...flags, image, "sleep", "600"], "/")
  ).trim();
  return {
    run: async (lines, environment = {}) => {
      const variables = Object.entries(environment).flatMap(([name, value]) => [
        "--env",
        `${name}=${value}`,
      ]);
      return tryShell('docker exec "$@"', ["docker", ...variables, id, "sh", "-euc", lines], "/");
    },
    [Symbol.asyncDispose]: async () => {
      await shell('docker rm --force "$0"', [id], "/");
    },
  };
}

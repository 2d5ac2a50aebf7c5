/** A container of the machines' Debian, in which nothing runs but what a test asks for. It has no Node, no Bun and no git. */
import type { ShellEnded } from "./shell.ts";
import { shell, tryShell } from "./shell.ts";

export interface BareContainer extends AsyncDisposable {
  /** Runs lines with `sh -eu`, with the environment given. */
  run(lines: string, environment?: Readonly<Record<string, string>>): Promise<ShellEnded>;
}

const image = "localhost/cluster-e2e-machine:debian-12";

/** Sees this machine's network, for what is served on loopback here. */
export async function startContainer(mount: string): Promise<BareContainer> {
  const flags = ["--detach", "--rm", "--network", "host", "--volume", `${mount}:${mount}:ro`, "--entrypoint", "sleep"];
  const id = (await shell('docker run "$@"', ["docker", ...flags, image, "600"], "/")).trim();
  return {
    run: async (lines, environment = {}) => {
      const variables = Object.entries(environment).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
      return tryShell('docker exec "$@"', ["docker", ...variables, id, "sh", "-euc", lines], "/");
    },
    [Symbol.asyncDispose]: async () => {
      await shell('docker rm --force "$0"', [id], "/");
    },
  };
}

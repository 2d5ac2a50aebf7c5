/** Engines that can't be used, or don't answer. */
import { expect } from "bun:test";
import { join } from "node:path";
import { run } from "./executable.ts";
import { pathWithEngine, type TestContainers } from "./test-containers.ts";

export const silentDocker =
  'echo "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?" >&2; exit 1';

/** A Podman without root under cgroups 1, found beside a silent Docker, and named by the words of a create. */
export async function expectRootlessRefused(
  containers: TestContainers,
  createWords: readonly string[],
): Promise<void> {
  const { engine, folder } = containers;
  const rootless = `[ "$1" != info ] || { ${Bun.which("podman")} "$@" | sed 's/"rootless": false/"rootless": true/; s/"cgroupVersion": "v2"/"cgroupVersion": "v1"/'; exit; }`;
  const PATH = await pathWithEngine(folder, "podman", () => rootless);
  const [docker] = (await pathWithEngine(folder, "docker", () => silentDocker)).split(":");
  const environment = {
    ...engine.environment,
    XDG_STATE_HOME: join(folder, "state"),
    PATH: `${docker}:${PATH}`,
  };
  const found = await run("cluster-container", ["list"], { environment });
  expect({ status: found.status, stdout: found.stdout }).toEqual({ status: 5, stdout: "" });
  expect(found.stderr).toContain("Docker does not answer");
  expect(found.stderr).toContain("Podman runs rootless under cgroups 1 here");
  expect(found.stderr).toMatch(
    /^For Docker: .*systemctl start docker.*\n {2}For Podman: .*sudo cluster-container/m,
  );
  const named = await containers.run(createWords, {
    environment: { PATH },
  });
  expect({ status: named.status, stdout: named.stdout }).toEqual({ status: 5, stdout: "" });
  expect(named.stderr).toContain("Podman runs rootless under cgroups 1 here");
}

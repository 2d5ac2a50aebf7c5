/**
 * `cluster-container` with this machine's Docker or with a Podman; the state folder and the cluster ids belong to the
 * test.
 */
import { randomBytes } from "node:crypto";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import {
  bareNodeImage,
  type ContainerEngine,
  dockerEngine,
  nodeImage,
  startPodman,
} from "./container-engine.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { type TestBackend, testProgram } from "./test-backend.ts";

export { bareNodeImage, nodeImage };

export interface TestContainers extends TestBackend {
  readonly stateFolder: string;
  readonly engine: ContainerEngine;
  /** The variables that keep the program to this test's folders and engine. */
  readonly environment: Readonly<Record<string, string>>;
  /** A cluster id that nobody else has. */
  id(name: string): string;
  /** Names of all containers and networks that belong to the cluster id, stopped ones too. */
  things(clusterId: string): Promise<readonly string[]>;
}

/**
 * Every command that names no engine is given this one's name, unless that is Docker, which is what they find. Podman
 * gets one image.
 */
export async function startTestContainers(
  name: ContainerEngine["name"] = "docker",
  podmanImage = nodeImage,
): Promise<TestContainers> {
  const folder = await temporaryFolder();
  const engine =
    name === "docker" ? dockerEngine : await startPodman(join(folder.path, "podman"), podmanImage);
  const prefix = `e2e-${randomBytes(4).toString("hex")}`;
  const state = join(folder.path, "state");
  const environment = {
    XDG_STATE_HOME: state,
    TMPDIR: folder.path,
    CI: "true",
    ...engine.environment,
  };
  const on = ([command = "", ...words]: readonly string[]): readonly string[] =>
    name === "docker" || words.includes("--engine")
      ? [command, ...words]
      : [command, "--engine", name, ...words];
  const program = testProgram("cluster-container", { environment }, on);
  return {
    folder: folder.path,
    stateFolder: join(state, "cluster-e2e", "container", name),
    engine,
    environment,
    id: (suffix) => `${prefix}-${suffix}`,
    ...program,
    things: async (clusterId) => thingsOf(engine, clusterId),
    [Symbol.asyncDispose]: async () => {
      // With their snapshots, which tests that failed leave.
      const { stdout } = await program.run(["list", "--quiet"]);
      for (const id of stdout.split("\n").filter((each) => each.startsWith(prefix)))
        await program.run(["destroy", "--yes", "-c", id]);
      const left = (await labelled(engine, "ps --all", "{{.ID}} {{.Names}}")).filter((line) =>
        line.includes(prefix),
      );
      const networks = (await labelled(engine, "network ls", "{{.ID}} {{.Name}}")).filter((line) =>
        line.includes(prefix),
      );
      for (const line of left)
        await engine.run(["rm", "--force", "--volumes", line.split(" ")[0]!]);
      for (const line of networks) await engine.run(["network", "rm", line.split(" ")[0]!]);
      await engine[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

async function thingsOf(engine: ContainerEngine, clusterId: string): Promise<readonly string[]> {
  const filter = `--filter=label=cluster-e2e.cluster-id=${clusterId}`;
  const found = await Promise.all([
    engine.run(["ps", "--all", filter, "--format={{.Names}}"]),
    engine.run(["network", "ls", filter, "--format={{.Name}}"]),
  ]);
  return found.flatMap((text) => text.split("\n")).filter((line) => line !== "");
}

async function labelled(
  engine: ContainerEngine,
  words: string,
  format: string,
): Promise<readonly string[]> {
  const text = await engine.run([
    ...words.split(" "),
    "--filter=label=cluster-e2e.cluster-id",
    `--format=${format}`,
  ]);
  return text.split("\n");
}

export const docker = async (words: readonly string[]): Promise<string> => dockerEngine.run(words);

/** A PATH on which the engine's program first does these lines of shell, which name the real one. */
export async function pathWithEngine(
  folder: string,
  name: ContainerEngine["name"],
  lines: (real: string) => string,
): Promise<string> {
  const bin = join(folder, `${name}-bin`);
  const real = Bun.which(name) ?? name;
  await Bun.write(join(bin, name), `#!/bin/bash\n${lines(real)}\nexec ${real} "$@"\n`);
  await chmod(join(bin, name), 0o755);
  return `${bin}:${process.env["PATH"]}`;
}

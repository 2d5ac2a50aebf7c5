/** A runner of GitHub: a container with Debian, without Bun, Node and Docker, that has this machine's Docker through a socket, as hosted runners do. */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import {
  type ClusterJob,
  type JobRequest,
  type PlayedJob,
  type StartStep,
  actionFolder,
  playClusterJob,
  playJob,
} from "../../support/action-runner.ts";
import { findNode } from "../../support/find-node.ts";
import { smallRelease } from "../../support/small-release.ts";
import { nodeImage } from "./container-engine.ts";
import { repository } from "./executable.ts";
import { shell } from "./shell.ts";

export interface CiRunner extends AsyncDisposable {
  /** Plays a job with the action. */
  play(inputs: JobRequest["inputs"], more?: Partial<JobRequest>): Promise<PlayedJob>;
  /** Plays a job with the action that creates a cluster for the job's own steps. */
  playCluster(job: Pick<ClusterJob, "inputs" | "lines">): ReturnType<typeof playClusterJob>;
  /** Runs lines as a step of a workflow. */
  run(lines: string): Promise<{ readonly status: number; readonly output: string }>;
}

const tag = "2020.01.01.0";
/** A runner runs actions in JavaScript with a Node of its own, which is not on the PATH. */
const nodeOfRunner = "/opt/runner/node";

/** Everything that the runner writes is in `folder`. */
export async function startRunner(folder: string): Promise<CiRunner> {
  const dist = join(repository, "dist");
  const release = await smallRelease(folder, tag, {
    container: `exec ${dist}/cluster-container "$@"`,
  });
  const installer = await Bun.file(join(release, "install.sh")).bytes();
  const known = {
    release: tag,
    download: `file://${folder}`,
    "install-sha256": new Bun.CryptoHasher("sha256").update(installer).digest("hex"),
  };
  await mkdir(join(folder, "work"));
  const docker = Bun.which("docker") ?? "";
  const node = (await findNode()) ?? "/bin/false";
  const mounts = [
    `${node}:${nodeOfRunner}:ro`,
    `${folder}:${folder}`,
    `${dist}:${dist}:ro`,
    `${actionFolder}:${actionFolder}:ro`,
    `${docker}:/usr/bin/docker:ro`,
    "/var/run/docker.sock:/var/run/docker.sock",
  ];
  const flags = ["--detach", "--rm", "--init", "--network", "host", "--entrypoint", "sleep"];
  const words = [...flags, ...mounts.map((mount) => `--volume=${mount}`), nodeImage, "infinity"];
  const id = (await shell('docker run "$@"', ["docker", ...words], "/")).trim();
  await shell('! docker exec "$0" sh -c "command -v bun || command -v node"', [id], "/");
  const start = startIn(id, folder);
  return {
    play: async (inputs, more = {}) =>
      playJob({ folder, start, ...more, inputs: { ...known, ...inputs } }),
    playCluster: async (job) =>
      playClusterJob({
        folder,
        start,
        node: nodeOfRunner,
        lines: job.lines,
        inputs: { ...known, ...job.inputs },
      }),
    run: async (lines) => {
      await Bun.write(join(folder, "lines.sh"), lines);
      const step = start(join(folder, "lines.sh"), {});
      return { status: await step.exited, output: step.output() };
    },
    [Symbol.asyncDispose]: async () => {
      await shell('docker rm --force "$0"', [id], "/");
    },
  };
}

const startIn = (id: string, folder: string): StartStep => {
  return (file, variables) => {
    const given = Object.entries({
      ...variables,
      HOME: join(folder, "home"),
      CI: "true",
      COLUMNS: "10000",
    });
    const flags = given.flatMap(([name, value]) => ["--env", `${name}=${value}`]);
    const processId = join(folder, "step.pid");
    // The runner puts what a step has added to the PATH in front of it.
    const lines = `PATH=$(paste -sd : ${folder}/path 2>/dev/null):$PATH; echo $$ >${processId}; exec sh -e ${file}`;
    const step = Bun.spawn(
      ["docker", "exec", "--workdir", join(folder, "work"), ...flags, id, "sh", "-c", lines],
      {
        stdio: ["ignore", "pipe", "pipe"],
      },
    );
    const written = { text: "" };
    const follow = async (stream: ReadableStream<Uint8Array>): Promise<void> => {
      const decoder = new TextDecoder();
      for await (const chunk of stream) written.text += decoder.decode(chunk, { stream: true });
    };
    const all = Promise.all([step.exited, follow(step.stdout), follow(step.stderr)]);
    return {
      exited: all.then(([status]) => status),
      output: () => written.text,
      kill: async (signal) => {
        const number = (await Bun.file(processId).text()).trim();
        await shell(
          'docker exec "$0" sh -c "kill -s $1 $2 2>/dev/null || :"',
          [id, signal.slice(3), number],
          "/",
        );
      },
    };
  };
};

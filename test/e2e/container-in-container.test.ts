/** The program in a container: with the host's socket, as in devcontainers and Jenkins, and beside a Docker of its own, as in GitLab's jobs. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expectLife, filesIn, type LifePlace, succeed, thingsIn } from "./support/cluster-life.ts";
import { type Ended, executablePath, run } from "./support/executable.ts";
import { type RemoteDocker, remoteLack, startRemoteDocker } from "./support/remote-docker.ts";
import {
  bareNodeImage,
  docker,
  startTestContainers,
  type TestContainers,
} from "./support/test-containers.ts";

const state: { containers?: TestContainers } = {};
const containers = (): TestContainers => state.containers!;

beforeAll(async () => {
  state.containers = await startTestContainers();
});
afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

/** What people do in a container that has the programs, this folder and what leads to an engine. */
interface Job extends AsyncDisposable {
  readonly id: string;
  /** Runs `cluster-container` there. */
  ask(words: readonly string[]): Promise<Ended>;
}

async function startJob(
  mounts: readonly string[],
  variables: Readonly<Record<string, string>>,
): Promise<Job> {
  const { folder, environment } = containers();
  const programs = [executablePath("cluster-container"), Bun.which("docker")!];
  const files = [
    ...programs.map((path) => `${path}:/usr/local/bin/${path.split("/").at(-1)}:ro`),
    `${folder}:${folder}`,
    ...mounts,
  ];
  const given = Object.entries({ ...environment, ...variables, HOME: "/root", COLUMNS: "10000" });
  const options = [
    ...files.map((file) => `--volume=${file}`),
    ...given.map(([name, value]) => `--env=${name}=${value}`),
  ];
  const id = await docker([
    "run",
    "--detach",
    ...options,
    "--entrypoint=sleep",
    bareNodeImage,
    "inf",
  ]);
  return {
    id,
    ask: (words) =>
      run("cluster-container", words, {
        environment: {},
        command: ["docker", "exec", id, "cluster-container"],
      }),
    [Symbol.asyncDispose]: async () => void (await docker(["rm", "--force", "--volumes", id])),
  };
}

/** From `doctor` to `destroy`, in the container alone. */
async function expectJobLife(job: Job, id: string, things: LifePlace["things"]): Promise<void> {
  const { folder } = containers();
  const place = { path: folder, ...filesIn(folder), run: job.ask, things };
  await expectLife(place, id, async () => {
    expect(await succeed(place, `inspect -c ${id}`)).toContain("through Docker");
    await writeFile(
      join(folder, `${id}.ssh`),
      await succeed(place, `inspect -c ${id} --output ssh-config`),
    );
    const login = ["ssh", "-F", join(folder, `${id}.ssh`), "agent_0", "hostname"];
    expect(await docker(["exec", job.id, ...login])).toBe("agent-0");
  });
}

test("in a container with the host's socket, a cluster is used through the host's Docker", async () => {
  await using job = await startJob(["/var/run/docker.sock:/var/run/docker.sock"], {});
  const clusterId = containers().id("socket");
  await expectJobLife(job, clusterId, async () => containers().things(clusterId));
});

test.skipIf(remoteLack !== undefined)(
  "in a job beside a Docker with TLS and a network of its own, a cluster is used through it",
  async () => {
    await using remote: RemoteDocker = await startRemoteDocker(
      join(containers().folder, "service"),
    );
    const { engine, address, certificates } = remote;
    await Bun.$`docker save ${bareNodeImage} | docker --host unix://${engine.socket} load`.quiet();
    await using job = await startJob([], {
      DOCKER_HOST: `tcp://${address}:2376`,
      DOCKER_TLS_VERIFY: "1",
      DOCKER_CERT_PATH: certificates,
    });
    await expectJobLife(job, containers().id("job"), async () => thingsIn(engine.docker));
  },
);

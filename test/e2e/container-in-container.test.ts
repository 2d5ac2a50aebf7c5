/** The program in a container: with the host's socket, as in devcontainers and Jenkins, with musl, as in Alpine's images, and beside a Docker of its own, as in GitLab's jobs. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expectLife, filesIn, type LifePlace, succeed, thingsIn } from "./support/cluster-life.ts";
import { type Ended, executablePath, repository, run } from "./support/executable.ts";
import { makeRelease } from "./support/release.ts";
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

interface JobSettings {
  readonly mounts?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  readonly image?: string;
  /** The path of `cluster-container`. */
  readonly program?: string;
}

async function startJob({
  mounts = [],
  variables = {},
  image = bareNodeImage,
  program = executablePath("cluster-container"),
}: JobSettings): Promise<Job> {
  const { folder, environment } = containers();
  const files = [
    `${program}:/usr/local/bin/cluster-container:ro`,
    `${Bun.which("docker")!}:/usr/local/bin/docker:ro`,
    `${folder}:${folder}`,
    ...mounts,
  ];
  const given = Object.entries({ ...environment, ...variables, HOME: "/root", COLUMNS: "10000" });
  const options = [
    ...files.map((file) => `--volume=${file}`),
    ...given.map(([name, value]) => `--env=${name}=${value}`),
  ];
  const id = await docker(["run", "--detach", ...options, "--entrypoint=sleep", image, "inf"]);
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

const mounts = ["/var/run/docker.sock:/var/run/docker.sock"];

test("in a container with the host's socket, a cluster is used through the host's Docker", async () => {
  await using job = await startJob({ mounts });
  const clusterId = containers().id("socket");
  await expectJobLife(job, clusterId, async () => containers().things(clusterId));
});

const muslLack = process.arch === "x64" ? undefined : "skipped: the image with musl is for x64";

test.skipIf(muslLack !== undefined)(
  `the release's program for musl does the same (${muslLack ?? "with Debian's musl"})`,
  async () => {
    await using release = await makeRelease(["--platform", "linux-x64-musl"], {}, "linux-x64-musl");
    const program = join(release.files, "cluster-container-linux-x64-musl");
    await chmod(program, 0o755);
    const image = (await Bun.$`${join(repository, "test/machine-image/musl")}`.text()).trim();
    await using job = await startJob({ mounts, image, program });
    const clusterId = containers().id("musl");
    await expectJobLife(job, clusterId, async () => containers().things(clusterId));
  },
);

test.skipIf(remoteLack !== undefined)(
  "in a job beside a Docker with TLS and a network of its own, a cluster is used through it",
  async () => {
    await using remote: RemoteDocker = await startRemoteDocker(
      join(containers().folder, "service"),
    );
    const { engine, address, certificates } = remote;
    await Bun.$`docker save ${bareNodeImage} | docker --host unix://${engine.socket} load`.quiet();
    const variables = {
      DOCKER_HOST: `tcp://${address}:2376`,
      DOCKER_TLS_VERIFY: "1",
      DOCKER_CERT_PATH: certificates,
    };
    await using job = await startJob({ variables });
    await expectJobLife(job, containers().id("job"), async () => thingsIn(engine.docker));
  },
);

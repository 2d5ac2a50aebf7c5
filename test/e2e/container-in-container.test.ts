/** The program in a container: with the host's socket, as in devcontainers and Jenkins, and beside a Docker of its own, as in GitLab's jobs. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { executablePath } from "./support/executable.ts";
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
  /** Resolves with what it prints, and fails where it does. */
  run(...words: readonly string[]): Promise<string>;
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
    run: (...words) => docker(["exec", id, ...words]),
    [Symbol.asyncDispose]: async () => void (await docker(["rm", "--force", "--volumes", id])),
  };
}

/** From `create` to `destroy`, in the container alone. */
async function expectLife(job: Job, clusterId: string): Promise<void> {
  const ask = (line: string): Promise<string> =>
    job.run("cluster-container", ...line.split(" "), "--cluster-id", clusterId);
  const counts = "--masters 1 --agents 1 --public-agents 0 --memory 400m --timeout 14m --wait";
  await ask(`create ${counts} --node-image ${bareNodeImage} example:bare`);
  expect(await ask("inspect")).toContain("through Docker");
  const sent = join(containers().folder, "sent");
  await writeFile(sent, "to the node\n");
  await ask(`cp ${sent} agent_0:/root/sent`);
  await ask(`cp agent_0:/root/sent ${sent}.back`);
  expect(await Bun.file(`${sent}.back`).text()).toBe("to the node\n");
  const config = join(containers().folder, `${clusterId}.ssh`);
  await writeFile(config, await ask("inspect --output ssh-config"));
  expect(await job.run("ssh", "-F", config, "agent_0", "hostname")).toBe("agent-0");
  await ask("node stop agent_0");
  await ask("node start agent_0");
  await ask("fault disk agent_0 --fill /dev/shm --for 2s --wait");
  await ask("snapshot create saved");
  await ask("snapshot restore saved");
  const logs = join(containers().folder, `logs-${clusterId}`);
  await ask(`logs --output-dir ${logs}`);
  expect(await Bun.file(join(logs, "agent_0.journal.txt")).text()).not.toBe("");
  await ask("destroy --yes");
}

test("in a container with the host's socket, a cluster is used through the host's Docker", async () => {
  await using job = await startJob(["/var/run/docker.sock:/var/run/docker.sock"], {});
  const clusterId = containers().id("socket");
  expect(await job.run("cluster-container", "doctor").catch(String)).toContain("Docker");
  await expectLife(job, clusterId);
  expect(await containers().things(clusterId)).toEqual([]);
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
    await expectLife(job, containers().id("job"));
    expect(await engine.docker(["ps", "--all", "--quiet"])).toBe("");
    expect(await engine.docker(["volume", "ls", "--quiet"])).toBe("");
  },
);

/**
 * Creations of containers that end early: Ctrl-C, kill -9, a container that stops, a second create. Nothing is left,
 * and the same create works again.
 */
import { expect, test } from "bun:test";
import { readdir, rm } from "node:fs/promises";
import { onlySsh } from "../support/only-ssh.ts";
import { destroyRemains, endAt, interruptAt } from "./support/ended-early.ts";
import { shareBackend } from "./support/shared-backend.ts";
import {
  docker,
  nodeImage,
  pathWithEngine,
  startTestContainers,
} from "./support/test-containers.ts";

const { backend: containers, artifact } = shareBackend(startTestContainers);

const createWords = (id: string, image = nodeImage) => [
  ..."create -vv --variant oss --public-agents 0 --node-image".split(" "),
  image,
  "-c",
  id,
  artifact(),
];

/** What the state folders of this cluster id hold. */
async function filesOf(id: string): Promise<readonly string[]> {
  const names = await readdir(containers().stateFolder, { recursive: true }).catch(() => []);
  return names.filter((name) => name.startsWith(`${id}-`));
}

/** What the program says when it has come so far. */
const stages = [
  { when: "while it looks around", said: "docker info", expectsConsole: false },
  { when: "while the network is made", said: "docker network create", expectsConsole: false },
  { when: "while the first container is made", said: "docker create", expectsConsole: true },
  { when: "while containers are started", said: "docker start", expectsConsole: true },
  { when: "while nodes boot", said: "Boot …", expectsConsole: true },
  { when: "while the installation is prepared", said: "Configure …", expectsConsole: true },
] as const;

test.each(stages)(
  "Ctrl-C $when leaves nothing but the failure logs",
  async ({ said, expectsConsole }) => {
    const id = containers().id("interrupted");
    await interruptAt(containers(), said, createWords(id));
    expect(await containers().things(id)).toEqual([]);
    // A container that has just been started may have written nothing.
    const hasConsole = (await filesOf(id)).some((name) => name.endsWith(".console.txt"));
    if (!expectsConsole || said === "Configure …") expect(hasConsole).toBe(expectsConsole);
    await rm(containers().stateFolder, { recursive: true, force: true });
  },
);

test.each(stages)(
  "after kill -9 $when, doctor and destroy know the remains, or the same create removes them",
  async ({ said }) => {
    const id = containers().id("killed");
    await endAt(containers(), { said, signal: "SIGKILL" }, createWords(id));
    // What the engine had been asked for it finishes alone.
    await Bun.sleep(1_000);
    if ((await containers().things(id)).length > 0) await destroyRemains(containers(), id);
    expect(await containers().things(id)).toEqual([]);
  },
);

test("what a killed create has made and never started is told of as such", async () => {
  const id = containers().id("forsaken");
  const lines = `[ "$1" != start ] || { sleep 3; exit 1; }`;
  const environment = { PATH: await pathWithEngine(containers().folder, "docker", () => lines) };
  const creating = containers().start(createWords(id), { environment });
  await creating.said("docker start");
  expect((await containers().run(["list"])).stdout).toMatch(new RegExp(`^${id} +starting `, "m"));
  creating.interrupt("SIGKILL");
  await creating.ended;
  expect((await containers().run(["list"])).stdout).toMatch(new RegExp(`^${id} +incomplete `, "m"));
  const waited = await containers().run(["wait", "-c", id]);
  expect(waited.status).toBe(1);
  expect(waited.stderr).toContain("never started");
  expect(await containers().run(["destroy", "-c", id])).toMatchObject({
    status: 0,
    stdout: `${id}\n`,
  });
  expect(await containers().things(id)).toEqual([]);
});

test("after kill -9 the same create works at once, and nothing is doubled", async () => {
  const id = containers().id("again");
  await endAt(containers(), { said: "Configure …", signal: "SIGKILL" }, createWords(id));
  expect(await containers().things(id)).toHaveLength(3);
  expect(await containers().run(createWords(id))).toMatchObject({ status: 0, stdout: `${id}\n` });
  expect(await containers().things(id)).toHaveLength(3);
  expect(
    (await readdir(containers().stateFolder)).filter((name) => name.startsWith(`${id}-`)),
  ).toHaveLength(1);
  expect((await containers().run(["destroy", "-c", id])).status).toBe(0);
});

test("of two creates of one id at the same moment one makes the cluster, and the other leaves it alone", async () => {
  const id = containers().id("twin");
  const both = await Promise.all([1, 2].map(() => containers().run(createWords(id))));
  expect(both.map(({ status }) => status ?? 99).toSorted((a, b) => a - b)).toEqual([0, 1]);
  expect(both.find(({ status }) => status === 1)!.stderr).toContain("[cluster-exists]");
  expect(await containers().things(id)).toHaveLength(3);
  expect((await containers().run(["run", "-c", id, "--no-test-env", "hostname"])).stdout).toBe(
    "master-0\n",
  );
  expect((await containers().run(["destroy", "-c", id])).status).toBe(0);
});

test("a container that is killed while it boots ends the creation at once, with its last lines, and its rights are not remembered", async () => {
  const id = containers().id("ended");
  const creating = containers().start(createWords(id));
  await creating.said("Boot …");
  await docker(["kill", `cluster-e2e-${id}-agent_0`]);
  const ended = await creating.ended;
  expect(ended.status).toBe(1);
  expect(ended.stderr).toMatch(
    /agent_0 \(\w{12}\) stopped before it could be used: the container stopped with status 137/,
  );
  expect(ended.stderr).toContain("[machine-failed]");
  expect(await containers().things(id)).toEqual([]);
  expect(await readdir(containers().stateFolder)).not.toContain(".rights");
});

test("an image that does not exist is said before anything is made", async () => {
  const id = containers().id("imageless");
  const ran = await containers().run(createWords(id, "localhost:1/no-such-image:1"));
  expect(ran.status).toBe(1);
  expect(ran.stderr).toContain("localhost:1/no-such-image:1");
  expect(ran.stderr).toContain("[image-not-found]");
  expect(await filesOf(id)).toEqual([]);
});

test("--keep-on-failure keeps the containers until they are destroyed", async () => {
  const id = containers().id("kept");
  const creating = containers().start([...createWords(id), "--keep-on-failure"]);
  await creating.said("Boot …");
  await docker(["kill", `cluster-e2e-${id}-master_0`]);
  const ended = await creating.ended;
  expect(ended.stderr).toContain(
    `Kept as requested: its containers. Remove them with: cluster-container destroy --cluster-id ${id}`,
  );
  expect(await containers().things(id)).toHaveLength(3);
  expect((await containers().run(["destroy", "-c", id])).status).toBe(0);
});

test.each([
  [
    "there is no engine",
    "only ssh",
    [],
    ["There is no executable program docker", "There is no executable program podman"],
  ],
  [
    "there is no docker",
    "only ssh",
    ["--engine", "docker"],
    ["There is no executable program docker"],
  ],
  [
    "there is no podman",
    "only ssh",
    ["--engine", "podman"],
    ["There is no executable program podman"],
  ],
  [
    "Docker does not run",
    { DOCKER_HOST: "unix:///nowhere.sock" },
    ["--engine", "docker"],
    ["Docker does not answer", "systemctl start docker"],
  ],
] as const)(
  "where %s, every command ends with 5 and says what to do",
  async (_, given, engine, says) => {
    const environment = given === "only ssh" ? { PATH: await onlySsh(containers().folder) } : given;
    for (const [command = "", ...words] of [["list"], ["destroy"], createWords("x")]) {
      const ran = await containers().run([command, ...engine, ...words], { environment });
      expect({ status: ran.status, stdout: ran.stdout }).toEqual({ status: 5, stdout: "" });
      for (const said of [...says, "[machine-not-set-up]"]) expect(ran.stderr).toContain(said);
    }
    const doctor = await containers().run(["doctor", ...engine], { environment });
    expect(doctor.status).toBe(1);
    for (const said of says) expect(doctor.stdout).toContain(said);
  },
);

/** The main flow and its failures on a real Podman, whose images and containers are in a folder of this test. */
import { describe, expect, test } from "bun:test";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { commandsOf, testKilledNode, testRemoval } from "./support/conformance.ts";
import { containerWitness, testContainerConformance } from "./support/container-conformance.ts";
import { listenEverywhere } from "./support/listener.ts";
import { podmanLack } from "./support/container-engine.ts";
import { interruptAt } from "./support/ended-early.ts";
import { run } from "./support/executable.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { saveInstalled, testCopy, testSnapshots } from "./support/snapshot-conformance.ts";
import { expectRootlessRefused, silentDocker } from "./support/refused-engines.ts";
import { nodeImage, pathWithEngine, startTestContainers } from "./support/test-containers.ts";

describe.skipIf(podmanLack !== undefined)(`on Podman (${podmanLack ?? "here"})`, () => {
  const { backend: containers, artifact } = shareBackend(async () => startTestContainers("podman"));
  const subject = testContainerConformance(containers, artifact, { engine: "podman", nodeImage });
  const { id } = subject;
  const twin = (): string => containers().id("twin");
  const createWords = (clusterId: string, ...more: readonly string[]) => [
    ..."create -vv --variant oss --node-image".split(" "),
    nodeImage,
    "-c",
    clusterId,
    ...more,
    artifact(),
  ];

  test("doctor names the engine, how nodes are reached, and what it didn't check", async () => {
    const ran = await containers().run(["doctor"]);
    expect(ran.status).toBe(0);
    expect(ran.stdout).toMatch(/✔ engine +Podman \d+\.\d+\.\d+ /);
    expect(ran.stdout).toMatch(
      /✔ node addresses +Nodes are reached at the containers' own addresses: Podman/,
    );
    expect(ran.stdout).toMatch(/– mounts +Not checked: there is no node image until/);
  });

  test("doctor tries whether nodes can read folders of this computer", async () => {
    const { engine, folder } = containers();
    await engine.run(["tag", nodeImage, "localhost/cluster-e2e-node:tried"]);
    const home = join(folder, "home");
    await mkdir(home);
    const doctor = async (lines: string) =>
      containers().run(["doctor"], {
        environment: { HOME: home, PATH: await pathWithEngine(folder, "podman", () => lines) },
      });
    expect((await doctor(":")).stdout).toContain(
      `Containers can read this computer's folders, such as those in ${home}`,
    );
    // As where the engine's machine is another one, on which the folder does not exist.
    const elsewhere = await doctor(
      `for word; do case $word in --mount=*) rm -r ${home}/cluster-e2e-* ;; esac; done`,
    );
    expect(elsewhere.stdout).toMatch(
      /! mounts +A container cannot read a folder in .*: podman run failed: .*no such file/,
    );
    expect(await readdir(home)).toEqual([]);
    await engine.run(["untag", nodeImage, "localhost/cluster-e2e-node:tried"]);
  });

  // Shows R138.
  test("nodes that are offline reach each other and nothing else, also after a restart", async () => {
    await using listener = await listenEverywhere();
    const offline = containers().id("offline");
    const created = await containers().run(
      createWords(offline, "--offline", "--public-agents", "0"),
    );
    expect(created.status, created.stderr).toBe(0);
    const gatewayOf = async (cluster: string): Promise<string> =>
      /^\d+\.\d+\.\d+\./
        .exec((await containers().inspect(cluster)).nodes[0]!.privateAddress)![0]
        .concat("1");
    const gateways = await Promise.all([id(), offline].map(gatewayOf));
    const reachedFrom = async (cluster: string): Promise<boolean> => {
      const script = listener.sending(cluster, gateways);
      const sent = await containers().run([
        "run",
        "-c",
        cluster,
        "--no-test-env",
        "--node",
        "all",
        "bash",
        "-c",
        script,
      ]);
      expect(sent.status, sent.stderr).toBe(0);
      return (await listener.heard(gateways)).includes(cluster);
    };
    const look =
      "ip route show default; timeout 60 getent hosts www.example.com; echo $?; ping -c1 agent-0 >/dev/null; echo $?";
    const expectOffline = async () => {
      expect(await reachedFrom(offline)).toBe(false);
      expect((await containers().run(["run", "-c", offline, "--no-test-env", look])).stdout).toBe(
        "2\n0\n",
      );
    };
    expect(await reachedFrom(id())).toBe(true);
    await expectOffline();
    expect((await containers().run(["node", "restart", "-c", offline, "master_0"])).status).toBe(0);
    await expectOffline();
    expect((await containers().run(["destroy", "--yes", "-c", offline])).status).toBe(0);
  });

  testSnapshots(subject, containerWitness(subject, containers));

  test("restored nodes have the volume", async () => {
    expect(await commandsOf(subject).on("agent_1", "cat /shared/note")).toBe("from outside");
  });

  const copy = testCopy(subject);

  test("a copy of a copy runs as well", async () => {
    const third = { ...subject, id: () => containers().id("third") };
    const { ask, expectJob } = commandsOf(third);
    await saveInstalled(copy);
    const words = ["create", "--from", `${copy.id()}:installed`, "--wait", "--timeout", "14m"];
    const made = await ask(words);
    expect(made.status, made.stderr).toBe(0);
    await expectJob();
    expect((await ask(["destroy", "--yes"])).status).toBe(0);
  });

  testRemoval(copy);

  test("a deleted snapshot leaves neither image nor volume", async () => {
    const { engine } = containers();
    expect((await containers().run(["snapshot", "delete", "installed", "-c", id()])).status).toBe(
      0,
    );
    const filter = `--filter=label=cluster-e2e.cluster-id=${id()}`;
    expect(await engine.run(["volume", "ls", "--quiet", filter])).toBe("");
  });

  // Shows R110.
  test("the other engine says where the cluster is", async () => {
    const elsewhere = await containers().run(["inspect", "-c", id(), "--engine", "docker"]);
    expect(elsewhere.status).toBe(3);
    expect(elsewhere.stderr).toContain("[cluster-not-found]");
    expect(elsewhere.stderr).toContain("add --engine podman");
  });

  // Shows R110.
  test("a docker that is Podman's counts as Podman", async () => {
    const environment = {
      PATH: await pathWithEngine(containers().folder, "docker", () => 'exec podman "$@"'),
    };
    const listed = await containers().run(["list", "--quiet", "--engine", "docker"], {
      environment,
    });
    expect(listed).toMatchObject({ status: 0, stdout: `${id()}\n` });
    const doctor = await containers().run(["doctor", "--engine", "docker"], { environment });
    expect(doctor.stdout).toMatch(/✔ engine +Podman /);
  });

  test("a Podman without root is refused plainly, named or found", async () =>
    expectRootlessRefused(containers(), createWords(containers().id("rootless"))));

  test("a Podman that does not run is told of, and what to do", async () => {
    const environment = { CONTAINER_HOST: "unix:///nowhere.sock" };
    const listed = await containers().run(["list"], { environment });
    expect({ status: listed.status, stdout: listed.stdout }).toEqual({ status: 5, stdout: "" });
    expect(listed.stderr).toContain("Podman does not answer");
    expect(listed.stderr).toContain("podman machine start");
  });

  // Shows R110.
  test("where Docker does not answer, Podman is found", async () => {
    const { engine, folder } = containers();
    const environment = {
      ...engine.environment,
      XDG_STATE_HOME: join(folder, "state"),
      PATH: await pathWithEngine(folder, "docker", () => silentDocker),
    };
    const listed = await run("cluster-container", ["list", "--quiet"], { environment });
    expect(listed).toMatchObject({ status: 0, stdout: `${id()}\n` });
    expect(listed.stderr).toMatch(/^Docker does not answer: .* Using Podman\.$/m);
    const missing = await run("cluster-container", ["destroy", "--yes", "-c", "x"], {
      environment,
    });
    expect(missing.status).toBe(3);
    expect(missing.stderr).toMatch(/in docker, .*: Docker does not answer/);
  });

  testKilledNode(subject);
  testRemoval(subject);

  test("of two creates of one id at the same moment one makes the cluster, and Ctrl-C leaves nothing", async () => {
    const both = await Promise.all(
      [1, 2].map(() => containers().run(createWords(twin(), "--public-agents", "0"))),
    );
    expect(both.map(({ status }) => status ?? 99).toSorted((a, b) => a - b)).toEqual([0, 1]);
    expect(both.find(({ status }) => status === 1)!.stderr).toContain("[cluster-exists]");
    expect(await containers().things(twin())).toHaveLength(3);
    const interrupted = containers().id("interrupted");
    await interruptAt(containers(), "Boot …", createWords(interrupted));
    expect(await containers().things(interrupted)).toEqual([]);
  });

  test("what a killed create has left is told of as such, and destroy --all removes all there is", async () => {
    const killed = containers().id("killed");
    const lines = `[ "$1" != start ] || { sleep 3; exit 1; }`;
    const environment = { PATH: await pathWithEngine(containers().folder, "podman", () => lines) };
    const creating = containers().start(createWords(killed), { environment });
    await creating.said("podman start");
    creating.interrupt("SIGKILL");
    await creating.ended;
    expect((await containers().run(["list"])).stdout).toMatch(
      new RegExp(`^${killed} +incomplete `, "m"),
    );
    const doctor = await containers().run(["doctor"]);
    expect(doctor.stdout).toContain(`cluster "${killed}" (its create was interrupted)`);
    const destroyed = await containers().run(["destroy", "--all", "--yes"]);
    expect(destroyed.status).toBe(0);
    expect(destroyed.stdout.trim().split("\n").toSorted()).toEqual([killed, twin()].toSorted());
    for (const each of [killed, twin()]) expect(await containers().things(each)).toEqual([]);
  });

  test("where Podman runs in a virtual machine, nodes are reached through it", async () => {
    // Here it is the real one, which only says what a podman machine's says of itself.
    const says = `s/"serviceIsRemote": false/"serviceIsRemote": true/; s/"distribution": "[a-z]*",/&"variant": "coreos",/`;
    const lines = (real: string) => `[ "$1" != info ] || { ${real} "$@" | sed '${says}'; exit; }`;
    const environment = { PATH: await pathWithEngine(containers().folder, "podman", lines) };
    const through = containers().id("through");
    const created = await containers().run(createWords(through, "--public-agents", "0", "--wait"), {
      environment,
    });
    expect({ status: created.status }, created.stderr).toEqual({ status: 0 });
    const cluster = await containers().inspect(through);
    expect(cluster.webUi).toBeUndefined();
    expect(cluster.nodes[0]!.publicAddress).toBeUndefined();
    expect((await containers().run(["run", "-c", through, "srun", "-N1", "hostname"])).stdout).toBe(
      "agent-0\n",
    );
    expect((await containers().run(["destroy", "-c", through])).status).toBe(0);
  });

  test("nothing is left of all that: no container, no network, no volume", async () => {
    expect(await containers().engine.run(["ps", "--all", "--quiet"])).toBe("");
    expect(await containers().engine.run(["network", "ls", "--quiet"])).toBe("podman");
    expect(await containers().engine.run(["volume", "ls", "--quiet"])).toBe("");
    expect(
      await containers().engine.run(["images", "--quiet", "--filter=label=cluster-e2e.snapshot"]),
    ).toBe("");
  });
});

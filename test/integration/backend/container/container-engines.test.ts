/** Which container engine is chosen, and what is reported about the others. The engines are small shell scripts, the only programs on the PATH. */
import { unmarked } from "../../../../src/outside-text.ts";
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { chmod, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { chooseEngine } from "../../../../src/backend/container/engine/choose-engine.ts";
import { containerChecks } from "../../../../src/backend/container/checks.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import { type EngineName } from "../../../../src/backend/container/engine/engine-kind.ts";
import { findInOtherEngines } from "../../../../src/backend/container/container-backend.ts";
import { findCluster } from "../../../../src/cluster/find-cluster.ts";
import { runChecks } from "../../../../src/commands/doctor/execute-doctor.ts";
import { type Progress, systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { outcomeText } from "../../../support/outcome-text.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** The shell scripts, by program. */
const docker = `echo '{"Server":{"Components":[{"Name":"Engine"}]}}'`;
const podman = `echo '{"host":{"security":{"rootless":false}}}'`;
const containerd = `echo '{"Server":{"Components":[{"Name":"containerd"}]}}'`;

const silentDocker = `echo "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?" >&2; exit 1`;

/** A PATH with only these programs, and the messages. */
async function openMachine(
  programs: Partial<Record<EngineName, string>>,
  variables: Readonly<Record<string, string>> = {},
) {
  const folder = await scratchFolder();
  for (const [name, lines] of Object.entries(programs)) {
    await Bun.write(join(folder.path, name), `#!/bin/sh\n${lines}\n`);
    await chmod(join(folder.path, name), 0o755);
  }
  const notes: string[] = [];
  const details: string[] = [];
  const waits: string[] = [];
  const progress: Progress = {
    ...silentProgress,
    note: (text) => void notes.push(text),
    detail: (_, text) => void details.push(text),
    waiting: (text) => {
      waits.push(text);
      if (text !== "") writeFileSync(join(folder.path, "told"), "");
    },
  };
  const runtime = { environment: { PATH: folder.path, HOME: folder.path, ...variables }, progress };
  return {
    folder: folder.path,
    notes,
    details,
    waits,
    runtime,
    choose: async (named?: EngineName) =>
      (await chooseEngine({ ...runtime, signal: neverAborted }, named)).kind.name,
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test.each(["", "null", "[", '"Docker"', "Welcome\n{}"])(
  "a docker that answers %j is reported, and not mistaken for Docker",
  async (answer) => {
    await using machine = await openMachine({ docker: `printf '${answer}'` });
    const error = await failureOf(machine.choose());
    expect(error.id).toBe("machine-not-set-up");
    expect(error.message).toContain('"docker version"');
    expect(error.hint).toContain("command -v docker");
  },
);

test.each([
  ["Docker before Podman", { docker, podman }, "docker"],
  ["Podman where docker is its own", { docker: podman, podman }, "podman"],
  ["Podman where docker is containerd's", { docker: containerd, podman }, "podman"],
  ["Podman where docker only greets", { docker: "echo Welcome", podman }, "podman"],
] as const)("without a name it is %s", async (_, programs, expected) => {
  await using machine = await openMachine(programs);
  expect(await machine.choose()).toBe(expected);
});

test.each([
  ["docker", { docker, podman }, "docker"],
  ["docker", { docker: podman, podman }, "podman"],
  ["podman", { docker, podman }, "podman"],
] as const)(
  "the engine that is named is used, and a docker that is Podman's counts as Podman: %#",
  async (...given) => {
    const [named, programs, expected] = given;
    await using machine = await openMachine(programs);
    expect(await machine.choose(named)).toBe(expected);
  },
);

test.skipIf(process.getuid?.() !== 0)(
  "root's Podman is used without asking it first, which takes long",
  async () => {
    await using machine = await openMachine({ podman: "exit 1" });
    expect(await machine.choose("podman")).toBe("podman");
  },
);

test("if docker is another program and Podman is missing, the error says both", async () => {
  await using machine = await openMachine({ docker: containerd });
  const error = await failureOf(machine.choose());
  expect(error.id).toBe("machine-not-set-up");
  expect(error.message).toMatch(/docker .* is not Docker\. .* no .* podman/);
  expect(error.cause).toMatchObject({ facts: { program: "docker" } });
});

// Shows R110.
test.each([
  ["does not answer", silentDocker],
  [
    "may not be used",
    `echo "permission denied while trying to connect to the Docker daemon socket" >&2; exit 1`,
  ],
  ["fails", "echo odd >&2; exit 1"],
])("if Podman is used because Docker %s, a note gives the reason", async (_, lines) => {
  await using machine = await openMachine({ docker: lines, podman });
  expect(await machine.choose()).toBe("podman");
  expect(machine.notes).toHaveLength(1);
  expect(machine.notes[0]).toMatch(/(?:docker|Docker) .*\. Using Podman\.$/);
});

test.each([
  ["is not there", {}],
  ["is Podman's", { docker: podman }],
])("if Podman is used because docker %s, only -v shows the reason", async (_, others) => {
  await using machine = await openMachine({ ...others, podman });
  expect(await machine.choose()).toBe("podman");
  expect(machine.notes).toEqual([]);
  expect(machine.details.at(-1)).toMatch(/docker .*\. Using Podman\.$/);
});

const brokenDocker = `[ "$1" != version ] || { ${docker}; exit; }; echo odd >&2; exit 1`;

test.each([
  ["does not answer", silentDocker, "Docker does not answer: Cannot connect to the Docker daemon"],
  ["breaks", brokenDocker, "failed: odd."],
])(
  "if no cluster is found and Docker %s, the error says that it may be there",
  async (_, lines, reason) => {
    await using machine = await openMachine({ docker: lines, podman });
    const others = await findInOtherEngines(
      { ...machine.runtime, signal: neverAborted },
      { kind: engineKinds.podman },
      "a",
    );
    expect(others.scopes).toEqual([]);
    expect(others.unreachable).toMatchObject([{ scope: "docker" }]);
    expect(unmarked(others.unreachable[0]!.reason)).toContain(reason);
    const scope = {
      kind: "engine",
      name: "podman",
      option: "--engine",
      findElsewhere: async () => others,
    };
    const backend = { scope, find: async () => undefined };
    const error = await failureOf(findCluster(backend, "a", neverAborted));
    expect(error.id).toBe("cluster-not-found");
    expect(error.hint).toContain("in docker");
    expect(error.hint).toContain(reason);
  },
);

test.each([
  ["is not there", {}],
  ["never serves", { podman: podman.replace("false", "true") }],
])("if no cluster is found, an engine that %s is not mentioned", async (_, programs) => {
  await using machine = await openMachine(programs);
  const others = await findInOtherEngines(
    { ...machine.runtime, signal: neverAborted },
    { kind: engineKinds.docker },
    "a",
  );
  expect(others).toEqual({ scopes: [], unreachable: [] });
});

/** A Docker that has a network with these labels and this name. */
const dockerWithNetwork = (name: string): string => {
  const labels = { "cluster-e2e.cluster-id": "a", "cluster-e2e.creation-id": "0123456789abcdef" };
  const network = JSON.stringify([{ Id: "1".repeat(64), Name: name, Labels: labels }]);
  return `case "$1 $2" in "network ls") echo ${"1".repeat(64)} ;; "network inspect") echo '${network}' ;; ps*) ;; *) ${docker} ;; esac`;
};

test.each([
  ["has it", "cluster-e2e-a-0123456789abcdef", ["docker"]],
  ["has only something like it", "another-network", []],
])(
  "if no cluster is found and another engine %s, the engines that have it are %j",
  async (_, name, scopes) => {
    await using machine = await openMachine({ docker: dockerWithNetwork(name), podman });
    const others = await findInOtherEngines(
      { ...machine.runtime, signal: neverAborted },
      { kind: engineKinds.podman },
      "a",
    );
    expect(others).toEqual({ scopes, unreachable: [] });
  },
);

test("an abort ends the search in other engines", async () => {
  await using machine = await openMachine({ docker });
  const interrupted = AbortSignal.abort(new Error("interrupted"));
  const asking = findInOtherEngines(
    { ...machine.runtime, signal: interrupted },
    { kind: engineKinds.podman },
    "a",
  );
  expect((await failureOf(asking)).message).toBe("interrupted");
});

test("the wait for a slow engine is shown; that for a quick one is not", async () => {
  const slow = `while ! [ -e "\${0%/*}/told" ]; do /bin/sleep 0.1; done; ${docker}`;
  await using machine = await openMachine({ docker: slow });
  expect(await machine.choose()).toBe("docker");
  expect(machine.waits).toEqual(["waiting for Docker to answer", ""]);
  machine.waits.length = 0;
  expect(await machine.choose()).toBe("docker");
  expect(machine.waits).toEqual([""]);
});

// Shows R110.
test("doctor reports that Docker hangs, and Podman does not take its place", async () => {
  await using machine = await openMachine({ docker: "exec /bin/sleep 600", podman });
  const runtime = { ...machine.runtime, clock: systemClock };
  const [engine] = await runChecks(
    { ...runtime, limitMs: 60_000, signal: neverAborted },
    containerChecks({ ...runtime, signal: neverAborted }, undefined).slice(0, 1),
  );
  expect(outcomeText(engine!)).toContain("docker version exceeded its limit of 30 s.");
  expect(outcomeText(engine!)).toContain(
    "Run docker info to see whether the engine answers.\nTo use Podman instead",
  );
});

test("doctor leaves no folder in the home if it is interrupted while it tries a container", async () => {
  // Exists until the machine is disposed of.
  const run = `: > "\${0%/*}/running"; while [ -e "\${0%/*}/running" ]; do /bin/sleep 0.1; done`;
  await using machine = await openMachine({
    docker: `case $1 in run) ${run} ;; images) echo localhost/cluster-e2e-node:x ;; *) ${docker} ;; esac`,
  });
  const { runtime, folder } = machine;
  const home = join(folder, "home");
  await mkdir(home);
  const environment = { ...runtime.environment, HOME: home };
  const ending = new AbortController();
  const checks = containerChecks(
    { ...runtime, environment, clock: systemClock, signal: ending.signal },
    "docker",
  );
  const mounts = checks.find(({ name }) => name === "mounts")!;
  void mounts.run(ending.signal).catch(() => {});
  while (!(await Bun.file(join(folder, "running")).exists())) await Bun.sleep(10);
  expect(await readdir(home)).toHaveLength(1);
  ending.abort();
  expect(await readdir(home)).toEqual([]);
});

test.each(["DOCKER_HOST", "DOCKER_CONTEXT"])(
  "a Docker that %s chose and that is silent is not replaced",
  async (name) => {
    await using machine = await openMachine(
      { docker: silentDocker, podman },
      { [name]: "elsewhere" },
    );
    const failure = await failureOf(machine.choose());
    expect(failure).toMatchObject({ id: "machine-not-set-up", facts: { choice: name } });
    expect(failure.hint).toContain(`unset ${name}`);
    expect(await machine.choose("podman")).toBe("podman");
  },
);

test("a Docker whose context was chosen and that is silent is not replaced", async () => {
  await using machine = await openMachine({ docker: silentDocker, podman });
  const configure = async (context: string) =>
    Bun.write(
      join(machine.folder, ".docker", "config.json"),
      JSON.stringify({ currentContext: context }),
    );
  await configure("far");
  expect((await failureOf(machine.choose())).hint).toContain("docker context use default");
  await configure("default");
  expect(await machine.choose()).toBe("podman");
});

test("a Podman that CONTAINER_HOST chose and that is silent is an error of its own", async () => {
  const silentPodman = `echo "Error: unable to connect to Podman socket" >&2; exit 125`;
  await using machine = await openMachine(
    { podman: silentPodman },
    { CONTAINER_HOST: "elsewhere" },
  );
  expect((await failureOf(machine.choose())).facts).toMatchObject({ choice: "CONTAINER_HOST" });
});

test("DOCKER_HOST may lead to Podman, or be there for other programs than docker", async () => {
  await using led = await openMachine(
    { docker: podman, podman },
    { DOCKER_HOST: "unix:///podman.sock" },
  );
  expect(await led.choose()).toBe("podman");
  await using alone = await openMachine({ podman }, { DOCKER_HOST: "unix:///podman.sock" });
  expect(await alone.choose()).toBe("podman");
});

const dockerOfPodman = `echo '{"Client":{},"Server":{"Components":[{"Name":"Podman Engine"}]}}'`;

test.each([
  ["DOCKER_HOST", "ssh://me@far/run/podman/podman.sock", dockerOfPodman],
  ["DOCKER_HOST", "tcp://far:2375", podman],
  ["DOCKER_CONTEXT", "far", dockerOfPodman],
])(
  "where %s=%s leads to no Docker, no other engine takes its place: %#",
  async (name, value, lines) => {
    await using machine = await openMachine({ docker: lines, podman }, { [name]: value });
    const failure = await failureOf(machine.choose());
    expect(failure).toMatchObject({ id: "machine-not-set-up", facts: { choice: name } });
    expect(failure.message).toContain(`${name}=${value} leads to no Docker`);
    expect(failure.hint).toContain("CONTAINER_HOST");
    expect((await failureOf(machine.choose("docker"))).message).toContain("leads to no Docker");
    expect(await machine.choose("podman")).toBe("podman");
  },
);

test("a context that an earlier Docker left does not stop Podman's own docker", async () => {
  await using machine = await openMachine({ docker: podman, podman }, { DOCKER_CONTEXT: "old" });
  expect(await machine.choose()).toBe("podman");
});

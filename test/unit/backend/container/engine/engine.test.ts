import { expect, jest, test } from "bun:test";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import {
  askJson,
  type Engine,
  openEngine,
  readEngineFacts,
} from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { ClusterError, messageOf } from "../../../../../src/errors.ts";
import { outside, unmarked } from "../../../../../src/outside-text.ts";
import { silentProgress } from "../../../../support/silent-progress.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const { signal } = new AbortController();
const answering = (text: string): Engine =>
  ({ kind: engineKinds.docker, ask: async () => text }) as unknown as Engine;

test("an answer in JSON is parsed", async () => {
  expect(await askJson(answering('[{"a": 1}]'), { words: ["info"] }, signal)).toEqual([{ a: 1 }]);
});

test("what an engine says is marked and made safe where an error quotes it", async () => {
  const failure = await failureOf(
    askJson(answering("\u001b[2Ja secret\u202e"), { words: ["info"] }, signal),
  );
  expect(messageOf(failure)).toContain(`Docker: "${outside("\uFFFD[2Ja secret\uFFFD")}"`);
});

test.each([
  ["Welcome to\n  the wrapper", '"Welcome to the wrapper"'],
  ["null", '"null"'],
  ["x".repeat(200), `"${"x".repeat(99)}…"`],
])("another answer, such as %j, is shown in the error", async (text, shown) => {
  expect(await failureOf(askJson(answering(text), { words: ["info"] }, signal))).toMatchObject({
    id: "machine-not-set-up",
    message: `The output of "docker info" is not that of Docker: ${shown}.`,
  });
});

test.each([
  ["Error response from daemon: Forbidden", "engine-failed", "docker info failed: Forbidden."],
  [
    "Cannot connect to the Docker daemon at unix:///x. Is the docker daemon running?",
    "machine-not-set-up",
    "Docker does not answer: Cannot connect to the Docker daemon at unix:///x.",
  ],
])("facts that Docker's daemon does not tell are not made up: %s", async (said, id, message) => {
  const answer = JSON.stringify({ Driver: "", KernelVersion: "", ServerErrors: [said] });
  const failure = await failureOf(readEngineFacts(answering(answer), signal));
  expect([failure.id as string, unmarked(messageOf(failure))]).toEqual([id, message]);
});

test("of output that a node can make as long as it likes, only the end is kept", async () => {
  await using folder = await scratchFolder();
  const program = join(folder.path, "docker");
  await writeFile(program, "#!/bin/sh\nhead -c 1000000 /dev/zero | tr '\\0' x\necho the end\n");
  await chmod(program, 0o755);
  const environment = { PATH: `${folder.path}:/usr/bin:/bin` };
  const engine = openEngine(engineKinds.docker, "", { environment, progress: silentProgress });
  const logs = await engine.ask({ words: ["logs"], keptCharacters: 100 }, signal);
  expect(logs).toEndWith("xthe end");
  expect(logs.length).toBeWithin(99, 300_000);
  expect(await engine.ask({ words: ["logs"] }, signal)).toHaveLength(1_000_007);
});

test("what a command prints is read to its end, and then its failure is thrown", async () => {
  await using folder = await scratchFolder();
  const program = join(folder.path, "docker");
  await writeFile(
    program,
    "#!/bin/sh\nprintf layers\n[ $1 = save ] || { echo 'Error: disk trouble' >&2; exit 1; }\n",
  );
  await chmod(program, 0o755);
  const details: string[] = [];
  const progress = {
    ...silentProgress,
    detail: (_: number, text: string) => void details.push(text),
  };
  const engine = openEngine(engineKinds.docker, "", {
    environment: { PATH: `${folder.path}:/bin` },
    progress,
  });
  const read = async (word: string, inner: AbortSignal): Promise<string> => {
    const chunks = await Array.fromAsync(engine.read([word, "a"], inner));
    return Buffer.concat(chunks).toString();
  };
  expect(await read("save", signal)).toBe("layers");
  expect(await failureOf(read("load", signal))).toMatchObject({
    id: "engine-failed",
    facts: { status: 1 },
  });
  expect(details.map(unmarked)).toEqual(["docker save a", "docker load a"]);
  const interrupted = AbortSignal.abort(new Error("interrupted"));
  expect((await failureOf(read("save", interrupted))).message).toBe("interrupted");
});

test("a command that the engine doesn't answer ends at its limit, or with the interrupt's own reason", async () => {
  await using folder = await scratchFolder();
  const program = join(folder.path, "docker");
  await writeFile(program, "#!/bin/sh\nexec sleep 60\n");
  await chmod(program, 0o755);
  const environment = { PATH: `${folder.path}:/bin` };
  const engine = openEngine(engineKinds.docker, "", { environment, progress: silentProgress });
  const ask = async (inner: AbortSignal) =>
    failureOf(engine.ask({ words: ["info", "x"], limitMs: 1 }, inner));
  expect(await ask(signal)).toMatchObject({
    id: "deadline-passed",
    message: "docker info exceeded its limit of 0.001 s.",
    facts: { command: "info" },
  });
  expect((await ask(AbortSignal.abort(new Error("interrupted")))).message).toBe("interrupted");
  const hintWith = async (more: Readonly<Record<string, string>>) => {
    const distant = { environment: { ...environment, ...more }, progress: silentProgress };
    const asked = openEngine(engineKinds.docker, "", distant).ask(
      { words: ["info"], limitMs: 1 },
      signal,
    );
    return unmarked((await failureOf(asked)).hint ?? "");
  };
  expect(await hintWith({ DOCKER_HOST: "ssh://me@there" })).toContain(
    "Docker is reached over SSH (DOCKER_HOST=ssh://me@there): make sure",
  );
  expect(await hintWith({ DOCKER_CONTEXT: "away" })).toContain("Docker may be reached over SSH");
  expect(await hintWith({ DOCKER_HOST: "tcp://there:2376" })).not.toContain("SSH");
});

test("a command that prints what it does ends when it has printed nothing for its limit, or with the whole work's limit", async () => {
  await using folder = await scratchFolder();
  const program = join(folder.path, "docker");
  await writeFile(program, "#!/bin/sh\necho Step 1\necho Step 2 >&2\nexec sleep 600\n");
  await chmod(program, 0o755);
  const environment = { PATH: `${folder.path}:/bin` };
  const engine = openEngine(engineKinds.docker, "", { environment, progress: silentProgress });
  const build = async (inner: AbortSignal, onLast: () => void) => {
    const printed: string[] = [];
    const onOutput = (chunk: string): void => {
      printed.push(chunk);
      if (["Step 1", "Step 2"].every((line) => printed.join("").includes(line))) onLast();
    };
    const silence = { limitMs: 1_200_000, log: () => "/logs/node-image.log" };
    return await failureOf(engine.ask({ words: ["build"], onOutput, silence }, inner));
  };
  const lastOutput = /\(last output: "Step [12]"; all of it: \/logs\/node-image\.log\)\.$/;
  jest.useFakeTimers();
  try {
    const silent = await build(signal, () =>
      queueMicrotask(() => jest.advanceTimersByTime(1_200_000)),
    );
    expect(silent).toMatchObject({
      id: "deadline-passed",
      facts: { command: "build", log: "/logs/node-image.log" },
    });
    expect(silent.message).toStartWith("docker build printed nothing for 20 min (");
    expect(silent.message).toMatch(lastOutput);
    expect(silent.hint).not.toContain("docker info");
  } finally {
    jest.useRealTimers();
  }
  const whole = new AbortController();
  const late = new ClusterError("deadline-passed", "Creating it exceeded its time limit.");
  const stopped = await build(whole.signal, () => whole.abort(late));
  expect(stopped.message).toStartWith(
    "Creating it exceeded its time limit. It was still waiting for docker build (",
  );
  expect(stopped.message).toMatch(lastOutput);
});

test("what Podman leaves in its temporary folder is removed, also after it was killed", async () => {
  await using folder = await scratchFolder();
  const program = join(folder.path, "podman");
  await writeFile(
    program,
    '#!/bin/sh\necho key >"$TMPDIR/left"\n[ $1 = cp ] || exec cat /dev/zero\n',
  );
  await chmod(program, 0o755);
  await mkdir(join(folder.path, "tmp"));
  const environment = { PATH: `${folder.path}:/bin`, TMPDIR: join(folder.path, "tmp") };
  const engine = openEngine(engineKinds.podman, "", { environment, progress: silentProgress });
  await engine.change({ words: ["cp"], stdin: "an archive" });
  for await (const chunk of engine.read(["save"], signal)) if (chunk.length > 0) break;
  expect(await readdir(environment.TMPDIR)).toEqual([]);
});

test.each([
  ["docker", "create", "DOCKER_HOST=x BUILDX_BUILDER=default BUILDKIT_PROGRESS=plain"],
  [
    "docker",
    "build",
    "DOCKER_HOST=x DOCKER_CONTENT_TRUST=1 BUILDX_BUILDER=default BUILDKIT_PROGRESS=plain",
  ],
  [
    "podman",
    "create",
    "DOCKER_HOST=x DOCKER_DEFAULT_PLATFORM=linux/s390x DOCKER_CONTENT_TRUST=1 BUILDX_BUILDER=mine",
  ],
] as const)(
  "settings of the %s client don't change what %s does to our images",
  async (name, word, expected) => {
    await using folder = await scratchFolder();
    const program = join(folder.path, name);
    const names =
      "DOCKER_HOST|DOCKER_DEFAULT_PLATFORM|DOCKER_CONTENT_TRUST|BUILDX_BUILDER|BUILDKIT_PROGRESS|DOCKER_BUILDKIT|PODMAN_USERNS|CONTAINER_HOST";
    await writeFile(program, `#!/bin/sh\nenv | grep -E '^(${names})=' | sort\n`);
    await chmod(program, 0o755);
    const environment = {
      PATH: `${folder.path}:/usr/bin:/bin`,
      DOCKER_HOST: "x",
      DOCKER_DEFAULT_PLATFORM: "linux/s390x",
      DOCKER_CONTENT_TRUST: "1",
      BUILDX_BUILDER: "mine",
      // Podman would take it for an address.
      CONTAINER_HOST: "",
      ...(name === "docker" ? { DOCKER_BUILDKIT: "0" } : { PODMAN_USERNS: "auto" }),
    };
    const engine = openEngine(engineKinds[name], "", { environment, progress: silentProgress });
    const seen = (await engine.ask({ words: [word] }, signal)).split("\n");
    expect(seen).toEqual(
      expected
        .split(" ")
        .filter((each) => each !== "PATH")
        .toSorted(),
    );
  },
);

test.each(["create", "run"])("%s never looks for an image elsewhere", async (word) => {
  await using folder = await scratchFolder();
  await writeFile(join(folder.path, "docker"), '#!/bin/sh\necho "$@"\n');
  await chmod(join(folder.path, "docker"), 0o755);
  const environment = { PATH: `${folder.path}:/usr/bin:/bin` };
  const engine = openEngine(engineKinds.docker, "", { environment, progress: silentProgress });
  expect(await engine.ask({ words: [word, "--tty", "image"] }, signal)).toBe(
    `${word} --pull=never --tty image`,
  );
});

/** Which container engine is chosen, and what is said of the others. The engines are programs of a few lines of shell, on a PATH of their own. */
import { expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { chooseEngine } from "../../src/backend/container/choose-engine.ts";
import type { EngineName } from "../../src/backend/container/engine-kinds.ts";
import { type Progress, silentProgress } from "../../src/system/progress.ts";
import { failureOf } from "../support/failure-of.ts";
import { scratchFolder } from "../support/scratch-folder.ts";

const neverAborted = new AbortController().signal;

/** What the programs do, in shell. */
const docker = `echo '{"Server":{"Components":[{"Name":"Engine"}]}}'`;
const podman = `echo '{"host":{"security":{"rootless":false}}}'`;
const containerd = `echo '{"Server":{"Components":[{"Name":"containerd"}]}}'`;

/** A PATH with these programs alone, and what is said meanwhile. */
async function openMachine(programs: Partial<Record<EngineName, string>>) {
  const folder = await scratchFolder();
  for (const [name, lines] of Object.entries(programs)) {
    await Bun.write(join(folder.path, name), `#!/bin/sh\n${lines}\n`);
    await chmod(join(folder.path, name), 0o755);
  }
  const notes: string[] = [];
  const waits: string[] = [];
  const progress: Progress = {
    ...silentProgress,
    note: (text) => void notes.push(text),
    waiting: (text) => void waits.push(text),
  };
  const surroundings = { environment: { PATH: folder.path }, progress };
  return {
    notes,
    waits,
    surroundings,
    choose: async (named?: EngineName) => (await chooseEngine(named, surroundings, neverAborted)).kind.name,
    [Symbol.asyncDispose]: folder[Symbol.asyncDispose],
  };
}

test.each(["", "null", "[", '"Docker"', "Welcome\n{}"])(
  "a docker that answers %j is told of, and not taken for Docker",
  async (answer) => {
    await using machine = await openMachine({ docker: `printf '${answer}'` });
    const error = await failureOf(machine.choose());
    expect(error.id).toBe("machine-not-set-up");
    expect(error.message).toContain(`What "docker version" answers is not Docker's`);
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

test("where docker is another's, and there is no Podman, both are said", async () => {
  await using machine = await openMachine({ docker: containerd });
  const error = await failureOf(machine.choose());
  expect(error.id).toBe("machine-not-set-up");
  expect(error.message).toContain("The program docker on the PATH is not Docker's. There is no program podman");
});

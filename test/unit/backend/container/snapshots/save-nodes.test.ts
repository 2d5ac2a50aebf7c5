import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineFailure } from "../../../../../src/backend/container/engine/engine-errors.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import type { NodeContainer } from "../../../../../src/backend/container/records/read-containers.ts";
import { saveNodes } from "../../../../../src/backend/container/snapshots/saved-nodes.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { scriptedClock } from "../../../../support/scripted-clock.ts";

const node = {
  id: "1".repeat(64),
  clusterId: "default",
  creationId: "0123456789abcdef",
  role: "agent",
  index: 0,
  volumes: [],
} as unknown as NodeContainer;

/** Saves the node on an engine that fails at one command. `found`: what the node prints before. Returns the commands and the error. */
async function save(
  failing: string,
  error = new ClusterError("engine-failed", "It failed."),
  found = "",
) {
  const commands: string[] = [];
  const clock = scriptedClock();
  const run = async ({
    words,
    limitMs,
  }: {
    readonly words: readonly string[];
    readonly limitMs?: number;
  }) => {
    commands.push(words[0] ?? "");
    // A large file system on a slow disk takes longer than what engines do otherwise.
    if (words[0] === "commit" || words[0] === "exec") expect(limitMs).toBe(1_800_000);
    if (words[0] === failing) throw error;
    return words[0] === "exec" ? found : "";
  };
  const engine = {
    kind: engineKinds.docker,
    ask: run,
    change: run,
    defer: async (words: readonly string[]) => ({
      run: async () => {
        commands.push(words[0] ?? "");
        return { status: failing === "unpause" ? 1 : 0, stderr: "no such container\n" };
      },
    }),
  } as unknown as Engine;
  const plan = { containers: [node], snapshot: "installed", rights: [], clock };
  const failure = await failureOf(saveNodes(engine, plan, neverAborted));
  return { commands, failure, pauses: clock.pauses };
}

test.each([
  ["pause", ["exec", "pause", "unpause"]],
  ["commit", ["exec", "pause", "commit", "unpause"]],
])("if the engine fails at %s, the nodes continue", async (failing, commands) => {
  const saved = await save(failing);
  expect(saved.commands).toEqual(commands);
  expect(saved.failure.message).toBe("It failed.");
});

test("a busy node that can't be frozen is paused again a little later, a few times", async () => {
  const end = {
    status: 1,
    stdout: "",
    stderr: "Error: OCI runtime pause failed: unable to freeze: unknown\n",
  };
  const saved = await save("pause", engineFailure(engineKinds.docker, ["pause"], end));
  expect(saved.commands.slice(1)).toEqual(
    Array.from({ length: 5 }, () => ["pause", "unpause"]).flat(),
  );
  expect(saved.pauses).toHaveLength(4);
  expect(saved.failure.message).toContain("unable to freeze");
});

test("nodes that stay paused are named, with the command that lets them continue", async () => {
  expect((await save("unpause")).failure).toMatchObject({
    message: "The nodes agent_0 are still paused: no such container.",
    hint: "Let them continue: docker unpause 111111111111",
  });
});

test("a path that an engine would lose is named, and no node is paused", async () => {
  const path = `/srv/${"deep/".repeat(800)}file`;
  const { commands, failure } = await save("none", undefined, `long ${path}\n`);
  expect(commands).toEqual(["exec"]);
  expect(failure).toMatchObject({ id: "machine-failed", facts: { node: "agent_0" } });
  expect(failure.message).toContain(`a path of ${path.length} bytes`);
  expect(failure.message).toContain("/srv/deep/");
});

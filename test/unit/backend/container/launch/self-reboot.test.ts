import { describe, expect, test } from "bun:test";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import type { EngineName } from "../../../../../src/backend/container/engine/engine-kind.ts";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import {
  allowReboots,
  announceStart,
  rebootPermits,
} from "../../../../../src/backend/container/launch/self-reboot.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";
import { recordingProgress } from "../../../../support/recording-progress.ts";

/** Records commands. `answer` is what the node says about its units. */
function scripted(name: EngineName, answer: string | undefined) {
  const changes: string[] = [];
  const change: Engine["change"] = async ({ words: [command = "", ...rest] }) => {
    changes.push(`${command} ${command === "exec" ? rest[1] : rest.join(" ")}`);
    if (command === "exec" && answer === undefined)
      throw new ClusterError("engine-failed", "it is not running");
    return answer ?? "";
  };
  return { engine: { kind: engineKinds[name], change } as Engine, changes };
}

describe("a node that reboots itself", () => {
  test.each<readonly [string, EngineName, string | undefined, readonly string[]]>([
    [
      "is started by Docker again",
      "docker",
      "3",
      ["exec node", "update --restart=on-failure node"],
    ],
    ["stays off if its systemd ends reboots like power-offs", "docker", "0", ["exec node"]],
    ["stays off if only some of its units have own ends", "docker", "2", ["exec node"]],
    ["stays off if it can't be asked", "docker", undefined, ["exec node"]],
    ["stays off where containers can't be changed", "podman", "3", []],
  ])("%s", async (...[, name, ...others]) => {
    const [answer, expected] = others;
    const { engine, changes } = scripted(name, answer);
    const { progress } = recordingProgress();
    await allowReboots({ engine, progress }, [{ id: "node" }], neverAborted);
    expect(changes).toEqual([...expected]);
  });

  test("is asked over a connection if there is one, and all that are able to are changed at once", async () => {
    const { engine, changes } = scripted("docker", undefined);
    const { progress, told } = recordingProgress();
    const answering = (id: string, answer: string) => ({ id, ask: async () => answer });
    const nodes = [answering("one", "3\n"), answering("two", "0\n"), answering("three", "3\n")];
    await allowReboots({ engine, progress }, [...nodes, { id: "silent" }], neverAborted);
    expect(changes).toEqual(["exec silent", "update --restart=on-failure one three"]);
    expect(told).toEqual(["silent will stay off if it reboots itself: it is not running"]);
  });

  test("is changed as soon as it is able, with those that became able during the change before", async () => {
    const changes: string[] = [];
    const first = Promise.withResolvers<string>();
    const change: Engine["change"] = async ({ words }) => {
      changes.push(words.slice(2).join(" "));
      return changes.length === 1 ? first.promise : "";
    };
    const { progress } = recordingProgress();
    const allow = rebootPermits({
      engine: { kind: engineKinds.docker, change } as Engine,
      progress,
    });
    const begin = async (id: string) => allow({ id, ask: async () => "3" }, neverAborted);
    const one = begin("one");
    await Bun.sleep(0);
    expect(changes).toEqual(["one"]);
    const others = [begin("two"), begin("three")];
    await Bun.sleep(0);
    first.resolve("");
    await Promise.all([one, ...others]);
    expect(changes).toEqual(["one", "two three"]);
  });

  test("stays off with all others if the engine can't be told, and this is only noted", async () => {
    const { progress, told } = recordingProgress();
    const change: Engine["change"] = async () => {
      throw new ClusterError("engine-failed", "the daemon is gone");
    };
    const engine = { kind: engineKinds.docker, change } as Engine;
    const nodes = ["one", "two"].map((id) => ({ id, ask: async () => "3" }));
    await allowReboots({ engine, progress }, nodes, neverAborted);
    expect(told).toEqual(
      ["one", "two"].map((id) => `${id} will stay off if it reboots itself: the daemon is gone`),
    );
  });

  test("is told that somebody starts it, where the engine starts nodes too", async () => {
    for (const [name, expected] of [
      ["docker", ["cp - node:/"]],
      ["podman", []],
    ] as const) {
      const { engine, changes } = scripted(name, "");
      await announceStart(engine, { id: "node" }, 0);
      expect(changes).toEqual([...expected]);
    }
  });
});

import { expect, test } from "bun:test";
import { clusterConsoleOutput } from "../../../../src/backend/container/container-machines.ts";
import type { Engine } from "../../../../src/backend/container/engine/engine.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

test("of a node's console, the last 2,000 lines are collected, and not much more than a million characters", async () => {
  const lines = Array.from({ length: 3_000 }, (_, place) => `line ${place}`);
  const kept: (number | undefined)[] = [];
  const ask: Engine["ask"] = async ({ words, keptCharacters }) => {
    kept.push(keptCharacters);
    const tail = Number(/--tail=(\d+)/.exec(words.join(" "))?.[1]);
    return Promise.resolve(lines.slice(lines.length - tail).join("\n"));
  };
  const cluster = {
    nodes: [{ id: "1".repeat(64), role: "agent", index: 0 }],
  } as unknown as ClusterRecord;
  const outputs = await clusterConsoleOutput({ ask } as Engine, cluster, neverAborted);
  expect(outputs).toEqual([{ name: "agent_0.console.txt", text: lines.slice(1_000).join("\n") }]);
  expect(kept).toEqual([1_000_000]);
});

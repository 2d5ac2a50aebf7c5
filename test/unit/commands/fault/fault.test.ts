import { expect, test } from "bun:test";
import { containerKind } from "../../../../src/backend/container/container-kind.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { exampleCluster, exampleNode } from "../../../support/install-example.ts";
import { runCommandLine } from "../../../support/run-command.ts";

test.each([
  ["list agent_0", "NODE: list takes no nodes"],
  ["list --for 0s", "--for: "],
  ["partition", "--between"],
  ["partition --between agent_0 --for 8d", "--for: must be from 1 s to 24 h"],
  ["partition --between agent_0 --for 0s", "--for: must be from 1 s to 24 h"],
  ["random --for 25d", "--for: must be from 1ms to 24d"],
  ["network agent_0", "--delay"],
  ["heal --unit etcd", "--unit: not for heal"],
  ["heal --between agent_0", "--between: not for heal"],
  ["list --stall", "--stall: not for list"],
  ["partition --between agent_0 --every 10s", "--every: only for random"],
  ["partition --between agent_0 --kinds process", "--kinds: only for random"],
  ["heal --targets majority", "--targets: only for random"],
])("fault %s is refused", async (words, problem) => {
  const running = runCommandLine(`fault ${words}`, { kind: containerKind, backend: {}, nowMs: 0 });
  const failure = await failureOf(running);
  expect(failure).toMatchObject({ id: "bad-usage", message: expect.stringContaining(problem) });
});

test("the line that repeats a plan leads to the same engine", async () => {
  const nodes = [0, 1].map((index) => exampleNode({ id: `i-${index}`, index }));
  const cluster = { ...exampleCluster(nodes, "none"), backend: "container" } as const;
  const told: string[] = [];
  await failureOf(
    runCommandLine("fault random --kinds process --unit etcd --seed 7 --engine podman", {
      kind: containerKind,
      backend: { find: async () => Promise.resolve(cluster) },
      nowMs: 0,
      told,
    }),
  );
  expect(told.at(-1)).toEndWith(" --unit=etcd --cluster-id=default --engine podman");
});

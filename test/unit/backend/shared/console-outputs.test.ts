import { expect, test } from "bun:test";
import { consoleOutputs } from "../../../../src/backend/shared/node-scripts.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const nodes = [0, 1, 2].map((index) => ({ role: "agent", index }) as NodeRecord);

test("a console that cannot be read, or is empty, costs no other node's", async () => {
  const read = async ({ index }: NodeRecord): Promise<string> => {
    if (index === 0) throw new Error("no such console");
    return index === 1 ? "" : "it booted\n";
  };
  expect(await consoleOutputs(nodes, read, neverAborted)).toEqual([
    { name: "agent_2.console.txt", text: "it booted\n" },
  ]);
});

test("what was read before the work was aborted is kept, and no other console is read after that", async () => {
  const aborting = new AbortController();
  const many = Array.from({ length: 20 }, (_, index) => ({ role: "agent", index }) as NodeRecord);
  const read = async ({ index }: NodeRecord): Promise<string> => {
    if (index === 0) aborting.abort(new Error("enough"));
    return "it booted\n";
  };
  const texts = await consoleOutputs(many, read, aborting.signal);
  expect(texts.map(({ name }) => name)).toContain("agent_0.console.txt");
  expect(texts.length).toBeLessThan(9);
});

/** Which machines' console output is saved, and how it is asked for. */
import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../../src/backend/cloud/api/api.ts";
import { clusterConsoleOutput } from "../../../../../src/backend/cloud/records/console-output.ts";
import type { ClusterRecord } from "../../../../../src/model/cluster-record.ts";
import { refusal } from "../../../../support/scripted-cloud.ts";

const never = new AbortController().signal;
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A cluster of agents in these states. */
const clusterOf = (states: readonly string[]): ClusterRecord =>
  ({
    nodes: states.map((state, index) => ({ id: `i-${index}`, role: "agent", index, state })),
  }) as unknown as ClusterRecord;

test("of many machines, those that do not run come first, and a hundred are asked for", async () => {
  const asked: string[] = [];
  const call = async (_: string, { InstanceId }: { readonly InstanceId: string }): Promise<unknown> => {
    asked.push(InstanceId);
    return { InstanceId, Output: base64(`boot of ${InstanceId}`) };
  };
  const states = Array.from({ length: 120 }, (_, index) => (index < 110 ? "running" : "ended"));
  const texts = await clusterConsoleOutput({ call } as unknown as CloudApi, clusterOf(states), never);
  expect(asked).toHaveLength(100);
  expect(asked.slice(0, 11)).toEqual([...Array.from({ length: 10 }, (_, index) => `i-${110 + index}`), "i-0"]);
  expect(texts.map(({ text }) => text)).toContain("boot of i-110");
});

test.each([
  ["UnsupportedOperation", "what was buffered earlier"],
  ["UnauthorizedOperation", undefined],
])("a machine type whose latest output is refused with %s: %p", async (code, expected) => {
  const call = async (_: string, { Latest }: { readonly Latest?: true }): Promise<unknown> => {
    if (Latest === true) throw refusal(code);
    return { Output: base64("what was buffered earlier") };
  };
  const texts = await clusterConsoleOutput({ call } as unknown as CloudApi, clusterOf(["running"]), never).catch(
    () => [],
  );
  expect(texts.map(({ text }) => text).find((text) => text.startsWith("what"))).toBe(expected);
});

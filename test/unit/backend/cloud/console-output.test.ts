import { expect, test } from "bun:test";
import type { CloudApi } from "../../../../src/backend/cloud/api/api.ts";
import { clusterConsoleOutput } from "../../../../src/backend/cloud/records.ts";
import { ClusterError } from "../../../../src/errors.ts";
import type { ClusterRecord } from "../../../../src/model/cluster-record.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** The console output of one machine, whose API refuses requests for the latest output with this code. */
async function outputs(code: string) {
  const call = async (_: string, { Latest }: { readonly Latest?: true }): Promise<object> => {
    if (Latest === true) throw new ClusterError("cloud-failed", "Refused.", { facts: { code } });
    return Promise.resolve({ Output: Buffer.from("booted\n").toString("base64") });
  };
  const cluster = {
    nodes: [{ id: "i-1", role: "agent", index: 0, state: "running" }],
  } as unknown as ClusterRecord;
  return clusterConsoleOutput({ call } as unknown as CloudApi, cluster, neverAborted);
}

test("a machine of an older type shows what it buffered earlier", async () => {
  expect(await outputs("UnsupportedOperation")).toEqual([
    { name: "agent_0.console.txt", text: "booted\n" },
  ]);
});

test("a machine whose output may not be read is left out, and not asked for again", async () => {
  expect(await outputs("UnauthorizedOperation")).toEqual([]);
});

test("of many machines, those that do not run come first, and a hundred are asked for", async () => {
  const asked: string[] = [];
  const call = async (
    _: string,
    { InstanceId }: { readonly InstanceId: string },
  ): Promise<object> => {
    asked.push(InstanceId);
    return Promise.resolve({});
  };
  const stateOf = (index: number) => (index < 110 ? "running" : "ended");
  const nodes = Array.from({ length: 120 }, (_, index) => ({
    id: `i-${index}`,
    role: "agent",
    index,
    state: stateOf(index),
  }));
  const cluster = { nodes } as unknown as ClusterRecord;
  await clusterConsoleOutput({ call } as unknown as CloudApi, cluster, neverAborted);
  const ended = Array.from({ length: 10 }, (_, index) => `i-${110 + index}`);
  expect([asked.length, asked.slice(0, 11)]).toEqual([100, [...ended, "i-0"]]);
});

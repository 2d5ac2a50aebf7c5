import { expect, test } from "bun:test";
import type { BackendKind, LocalPart } from "../../../src/backend/contract.ts";
import type { Power } from "../../../src/backend/power.ts";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { runCommandLine } from "../../support/run-command.ts";

const node = (role: string, state: string) =>
  ({
    id: role,
    role,
    index: 0,
    state,
    ssh: { host: "192.0.2.1", port: 22, user: "root" },
  }) as NodeRecord;
const cluster = exampleCluster([node("master", "running"), node("agent", "stopped")], "oss");

/** Runs a command on a cluster whose nodes stay as they are. Records what is requested of which nodes. */
async function run(words: string, kind: BackendKind = containerKind) {
  const calls: string[] = [];
  const act = (name: string) => async (_: ClusterRecord, nodes: readonly NodeRecord[]) =>
    void calls.push(`${name} ${nodes.map(({ id }) => id).join()}`);
  const power: Power = {
    shutDown: act("shut down"),
    cutPower: act("cut"),
    start: act("start"),
    pause: act("pause"),
    resume: act("resume"),
    stopsClocks: false,
  };
  const local = { power } as unknown as LocalPart;
  const backend = { name: "container", find: async () => cluster, local } as const;
  const ran = await runCommandLine(`${words} -c example`, {
    kind,
    backend,
    nowMs: 0,
    clock: systemClock,
  });
  return { ...ran, calls };
}

const boots = "The nodes boot. Run the wait command to find out when the platform is ready.";

test.each([
  ["stop", ["shut down master"], false],
  ["stop --force", ["cut master"], false],
  ["node stop masters", ["shut down master"], false],
  // This master still runs after that, so it isn't started.
  ["node restart --force master_0", ["cut master"], false],
  ["node pause all", ["pause master"], false],
  ["node start agents", ["start agent"], true],
  ["start", ["start agent"], true],
  ["node start masters", [], false],
  ["node restart agents", ["start agent"], true],
])("%s: %p", async (words, calls, isBooting) => {
  const ran = await run(words);
  expect(ran.calls).toEqual(calls);
  expect(ran.told.includes(boots)).toBe(isBooting);
  const nodes = [
    { reference: "master_0", state: "running" },
    { reference: "agent_0", state: "stopped" },
  ];
  expect(ran.data).toEqual({ cluster: { id: "example", state: "running" }, nodes });
});

test.each([
  ["node pause --force all", containerKind, "--force: pause takes no --force"],
  ["node restart --force all", cloudKind, "--force: no such option"],
  ["node stop all", cloudKind, 'ACTION: "stop" is not one of restart'],
  ["node stop", containerKind, "NODE: required"],
  ["node", containerKind, "ACTION: required"],
])("%s is refused", async (words, kind: BackendKind, problem) => {
  expect((await failureOf(run(words, kind))).message).toContain(problem);
});

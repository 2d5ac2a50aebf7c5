/** What goes wrong while the command `fault` begins a fault on the nodes of a cluster. Every row checks that no node keeps it. */
import type { ScriptedAnswer } from "../../local-cloud/machines/scripted-answers.ts";
import type { Ended } from "../../e2e/support/executable.ts";
import { until } from "../../support/until.ts";
import type { Expected, Fault } from "../fault.ts";
import type { CloudWorld } from "../worlds/cloud-world.ts";
import { answering, failed } from "./cloud-injections.ts";

type CloudFault = Fault<CloudWorld>;

const words = ["fault", "partition", "--between", "agent_0", "-c", "faulty"] as const;

const observed: ScriptedAnswer = { pattern: "e2e-observe-node", stdout: "link=10.0.0.1 1\n", readsStdin: true };
const healed: ScriptedAnswer = { pattern: "e2e-heal-faults", readsStdin: true };
const start: ScriptedAnswer = { pattern: "e2e-start-fault", readsStdin: true };
const never = { ...start, delayMs: 600_000 };

const countOf = ({ cloud }: CloudWorld, name: string): number =>
  cloud.answers.answered.filter(({ command }) => command.includes(name)).length;

/** Lets the command meet something once it has asked the nodes to begin. Fails unless this many nodes are healed. */
const onceBegun =
  (meet: (world: CloudWorld, running: ReturnType<CloudWorld["start"]>) => void | Promise<void>, nodes = 2) =>
  async (world: CloudWorld): Promise<Ended> => {
    const running = world.start(words);
    await until("the nodes are asked to begin", () => countOf(world, "e2e-observe-node") >= 2);
    await Bun.sleep(500);
    await meet(world, running);
    const ended = await running.ended;
    if (countOf(world, "e2e-heal-faults") < nodes) throw new Error(`nodes keep the fault:\n${ended.stderr}`);
    return ended;
  };

const row = (
  name: string,
  answer: ScriptedAnswer,
  act: NonNullable<CloudFault["act"]>,
  expected: Expected,
): CloudFault => ({
  name,
  place: "machine",
  needsCluster: true,
  seconds: 10,
  strike: answering(answer, observed, healed),
  act,
  expected: { ...expected, keepsCluster: true, withinMs: 90_000 },
});

export const injectedFaults: readonly CloudFault[] = [
  row(
    "a fault cannot begin on a node",
    { ...start, status: 1, stderr: "failed: it has neither nft nor iptables\n" },
    onceBegun(() => {}),
    failed("remote-command-failed", /(?:master|agent)_0: .*neither nft nor iptables/),
  ),
  row(
    "a fault does not show",
    start,
    onceBegun(() => {}),
    failed("remote-command-failed", "2 of 2 pings answered"),
  ),
  row(
    "a fault is interrupted while it begins",
    never,
    onceBegun((_, running) => running.interrupt("SIGINT")),
    { status: "SIGINT", id: "interrupted", says: [], keepsCluster: true },
  ),
  row(
    "a fault's program is killed while it begins",
    never,
    onceBegun((_, running) => running.interrupt("SIGKILL"), 0),
    { status: "SIGKILL", says: [], keepsCluster: true },
  ),
  row(
    "a node ends while a fault begins",
    { ...start, delayMs: 5_000 },
    async (world) => {
      const agent = world.cloud.instances()[1]!.instanceId;
      const ended = await onceBegun(async () => world.terminate([agent]), 1)(world);
      // The master stays, as it should; it ends with the cluster.
      await world.endCluster();
      return ended;
    },
    failed("connection-failed", /may have the fault until its time is over/),
  ),
];

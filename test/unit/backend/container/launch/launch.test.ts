import { limitsOf } from "../../../../../src/backend/container/limits.ts";
import { expect, test } from "bun:test";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import {
  createNode,
  hostsFiles,
  launchNodes,
  type LaunchPlan,
} from "../../../../../src/backend/container/launch/launch.ts";
import { failureOf } from "../../../../support/failure-of.ts";

const plan: LaunchPlan = {
  clusterId: "own",
  counts: { master: 1, agent: 1, public_agent: 0 },
  options: { customVolumes: [], limits: limitsOf({}) },
  image: "nodes:1",
  network: "cluster-e2e-own-0123456789abcdef",
  labels: { clusterId: "own", creationId: "0123456789abcdef" },
  addressOf: ({ index }) => `172.18.0.${index + 2}`,
  system: { words: ["--tty"], command: ["/bin/sh", "-c", "exec /sbin/init"], memoryBytes: 0 },
};
const node = { role: "public_agent", index: 2 } as const;

/** An engine that answers with an id. */
function recordingEngine() {
  const commands: (readonly string[])[] = [];
  const change: Engine["change"] = async ({ words }) => {
    commands.push(words);
    return Promise.resolve("1".repeat(64));
  };
  return {
    commands,
    engine: { kind: engineKinds.docker, option: "", change } as unknown as Engine,
  };
}

/** The words that create a node, without its labels. */
async function createWords(change: Partial<LaunchPlan>): Promise<readonly string[]> {
  const { commands, engine } = recordingEngine();
  await createNode(engine, { ...plan, ...change }, node);
  return commands.flat().filter((word) => !word.startsWith("--label="));
}

const usual = [
  "create",
  "--name=cluster-e2e-own-public_agent_2",
  "--hostname=public-agent-2",
  "--network=cluster-e2e-own-0123456789abcdef",
  "--network-alias=public-agent-2",
  "--ip=172.18.0.4",
  "--user=0:0",
  "--entrypoint=/bin/sh",
  "--tty",
  "--mount=type=volume,target=/var/lib/docker,volume-label=cluster-e2e.node-volume=0123456789abcdef",
  "--log-driver=json-file",
  "--log-opt=max-size=2m",
  "--log-opt=max-file=2",
];
const rest = ["nodes:1", "-c", "exec /sbin/init"];

test.each<[string, Partial<LaunchPlan>, readonly string[]]>([
  ["without options", {}, []],
  [
    "with limits and volumes",
    { options: { customVolumes: ["/a:/b"], limits: { memory: "2g", cpus: "1.5" } } },
    ["--volume=/a:/b", `--shm-size=${1024 ** 3}`, "--memory=2g", "--cpus=1.5"],
  ],
])("a node %s is created with what it needs and nothing else", async (_, change, more) => {
  expect(await createWords(change)).toEqual([...usual, ...more, ...rest]);
});

test.each([
  ["2g", 8e9, 1024 ** 3],
  ["512m", 8e9, 256 * 1024 ** 2],
  ["1048576k", 8e9, 512 * 1024 ** 2],
  ["1073741824", 8e9, 512 * 1024 ** 2],
  ["1t", 8e9, 4e9],
  ["2g", 0, 1024 ** 3],
  [undefined, 8e9, 4e9],
])(
  "of a limit of %p and %d bytes of the computer, a node may share half",
  async (memory, memoryBytes, shared) => {
    const options = { customVolumes: [], limits: limitsOf({ memory }) };
    const words = await createWords({ options, system: { ...plan.system, memoryBytes } });
    expect(words.filter((word) => word.startsWith("--shm-size"))).toEqual([`--shm-size=${shared}`]);
  },
);

test("a node that is offline has no name server, and learns which way to cut and at which ports to answer", async () => {
  const labels = { ...plan.labels, range: "172.18.0.0/16", webUi: "http:8080/ui", offline: "yes" };
  const words = await createWords({ labels });
  expect(words).toEqual([
    ...usual.slice(0, 6),
    "--dns=192.0.2.53",
    ...usual.slice(6),
    ...rest,
    "start-system",
    "172.18.0.1",
    "22",
    "8080",
    "443",
  ]);
  const { range: _, ...unknown } = labels;
  expect(await failureOf(createWords({ labels: unknown }))).toBeInstanceOf(TypeError);
});

test("nodes know each other's names and addresses before they start", () => {
  const nodes = [
    { role: "master", index: 0, address: "172.18.0.2" },
    { role: "public_agent", index: 1, address: "172.18.0.3" },
  ] as const;
  const [folder, hosts] = hostsFiles(nodes);
  expect(hosts?.name).toBe(`${folder?.name}hosts`);
  expect(hosts?.text).toBe("172.18.0.2 master-0\n172.18.0.3 public-agent-1\n");
});

test("after an interrupt, no node starts", async () => {
  const { commands, engine } = recordingEngine();
  const interrupted = new AbortController();
  const identityOf = async (): Promise<Uint8Array> => {
    interrupted.abort(new Error("interrupted"));
    return Promise.resolve(new Uint8Array());
  };
  const launch = {
    plan,
    first: { role: "master", index: 0, id: "f" } as const,
    identityOf,
    onStart: () => {},
  };
  expect((await failureOf(launchNodes(engine, launch, interrupted.signal))).message).toBe(
    "interrupted",
  );
  expect(commands.map(([command]) => command)).not.toContain("start");
});

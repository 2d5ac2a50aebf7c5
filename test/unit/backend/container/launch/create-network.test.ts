import { expect, test } from "bun:test";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import { engineFailure } from "../../../../../src/backend/container/engine/engine-errors.ts";
import {
  addressesIn,
  createNetwork,
  freeRanges,
  overlap,
  parseRoutes,
} from "../../../../../src/backend/container/launch/create-network.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const own = { clusterId: "copy", creationId: "0123456789abcdef" };
const labels = { ...own, counts: "master=1 agent=0 public_agent=0" };
const network = { ...own, labels, reach: "engine" } as const;
const name = `cluster-e2e-copy-${own.creationId}`;

/** An engine that offers its lowest free range, of these. `taken`: how often another program is faster when a range is asked for. */
function engineWith(
  ranges: readonly string[],
  { mtu = "1500", kind = engineKinds.docker, taken = 0 } = {},
) {
  const offered: string[] = [];
  const created: string[] = [];
  const networks = new Map<
    string,
    { readonly Id: string; readonly Labels: object; readonly range: string }
  >();
  const isFree = (range: string) => [...networks.values()].every((made) => made.range !== range);
  const lost = { times: 0 };
  const change = async ({ words }: { readonly words: readonly string[] }): Promise<string> => {
    const named = words.at(-1)!;
    if (words[1] === "rm") {
      networks.delete(named);
      return "";
    }
    const wanted = words.find((word) => word.startsWith("--subnet="))?.slice("--subnet=".length);
    if (wanted !== undefined && lost.times++ < taken) {
      const stderr =
        "Error response from daemon: Pool overlaps with other one on this address space\n";
      throw engineFailure(kind, words, { status: 1, stdout: "", stderr });
    }
    const range = wanted ?? ranges.find(isFree);
    if (range === undefined) throw new Error("no range is left");
    const found = words
      .flatMap((word) => [...word.matchAll(/^--label=([^=]*)=(.*)$/g)])
      .map(([, key, value]) => [key, value]);
    offered.push(range);
    created.push(
      words.filter((word) => /^--(?:subnet|gateway|opt|internal|disable)/.test(word)).join(" "),
    );
    networks.set(named, { Id: "f".repeat(64), Labels: Object.fromEntries(found), range });
    return "f".repeat(64);
  };
  const ask = async ({ words }: { readonly words: readonly string[] }): Promise<string> => {
    const asked = words.at(-1)!;
    if (asked !== name) {
      const options = { [kind.defaultNetwork.mtuOption]: mtu };
      return JSON.stringify([{ Name: asked, Options: options, name: asked, options }]);
    }
    const { range, Id, Labels } = networks.get(name)!;
    const Config = [{ Subnet: "fd00::/64" }, { Subnet: range }, { Subnet: "192.0.2.0/24" }];
    return JSON.stringify([
      {
        Id,
        Labels,
        Name: name,
        IPAM: { Config },
        id: Id,
        labels: Labels,
        name,
        subnets: [{ subnet: range }],
      },
    ]);
  };
  const ranged = (): readonly (readonly [name: string, range: string])[] =>
    [...networks].map(([each, { range }]) => [each, range]);
  return { engine: { kind, ask, change } as unknown as Engine, ranged, offered, created };
}

const known = ["172.18.0.2/16", "172.20.0.3/16"];

test.each([
  [["172.19.0.0/16"], "172.19.0.0/16"],
  [["172.18.0.0/16", "172.18.4.0/24", "10.89.0.0/24", "10.89.1.0/24"], "10.89.0.0/24"],
])(
  "of the ranges %p, a copy gets the first that has none of the private addresses",
  async (ranges, expected) => {
    const { engine, ranged } = engineWith(ranges);
    expect((await createNetwork(engine, network, known, neverAborted)).range).toBe(expected);
    expect(ranged()).toEqual([[name, expected]]);
  },
);

test("Docker's range is asked for by name, so that nodes can have addresses of our choice", async () => {
  const { engine, created } = engineWith(["172.19.0.0/16"]);
  await createNetwork(engine, network, [], neverAborted);
  expect(created).toEqual(["", "--subnet=172.19.0.0/16 --gateway=172.19.0.1"]);
  const podman = engineWith(["10.89.0.0/24"], { kind: engineKinds.podman });
  await createNetwork(podman.engine, network, [], neverAborted);
  expect(podman.created).toEqual([""]);
});

test.each([
  ["docker", ["--internal", "--internal --subnet=172.19.0.0/16 --gateway=172.19.0.1"]],
  ["podman", ["--disable-dns"]],
] as const)(
  "a network of %s for nodes that are offline leads nowhere, also when its range is asked for by name",
  async (title, expected) => {
    const { engine, created } = engineWith(["172.19.0.0/16"], { kind: engineKinds[title] });
    await createNetwork(
      engine,
      { ...network, labels: { ...labels, offline: "yes" } },
      [],
      neverAborted,
    );
    expect(created.map((words) => words.split(" ").toSorted().join(" "))).toEqual(
      expected.map((words) => words.split(" ").toSorted().join(" ")),
    );
  },
);

test("where Docker has its usual ranges, and this computer's routes show them, a network is created once", async () => {
  const { engine, created } = engineWith(["172.19.0.0/16"], { taken: 2 });
  const here = { ...network, hasUsualRanges: true };
  const { range, bridge } = await createNetwork(engine, here, known, neverAborted);
  expect(created).toEqual([`--subnet=${range} --gateway=${addressesIn(range, 0)[0]}`]);
  expect(known.some((each) => overlap(range, each))).toBe(false);
  expect(bridge).toBe(`br-${"f".repeat(12)}`);
});

test("a range that we chose is given back if the network's bridge is not on this computer", async () => {
  const { engine, created, ranged } = engineWith(["10.1.0.0/16"]);
  const perhaps = { ...network, hasUsualRanges: true, mayBeElsewhere: true };
  expect((await createNetwork(engine, perhaps, known, neverAborted)).range).toBe("10.1.0.0/16");
  expect(created).toEqual([
    expect.stringMatching(/^--subnet=/),
    "",
    "--subnet=10.1.0.0/16 --gateway=10.1.0.1",
  ]);
  expect(ranged()).toEqual([[name, "10.1.0.0/16"]]);
});

test("the engine chooses if all that we choose are taken meanwhile", async () => {
  const { engine, created } = engineWith(["172.19.0.0/16"], { taken: 4 });
  const here = { ...network, hasUsualRanges: true };
  expect((await createNetwork(engine, here, [], neverAborted)).range).toBe("172.19.0.0/16");
  expect(created).toEqual(["", "--subnet=172.19.0.0/16 --gateway=172.19.0.1"]);
});

test("free are the usual ranges that no route and no name server is in", () => {
  const used = ["0.0.0.0/0", "192.168.0.0/17", "172.16.0.0/13", "172.24.3.4/32", "172.25.0.1/30"];
  const free = freeRanges(used, ["172.26.0.2/16"]);
  expect(free.slice(0, 5).toSorted()).toEqual(
    [27, 28, 29, 30, 31].map((part) => `172.${part}.0.0/16`),
  );
  // Networks behind the router often have these, so they come last.
  expect(free.slice(5).toSorted()).toEqual(
    [128, 144, 160, 176, 192, 208, 224, 240].map((part) => `192.168.${part}.0/20`),
  );
  expect(freeRanges([], [])).toEqual([]);
});

test("routes are read as Linux shows them", () => {
  const lines = [
    "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT",
    "eth0\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0",
    "br-20a5364b726c\t00A0A8C0\t00000000\t0001\t0\t0\t0\t00F0FFFF\t0\t0\t0",
  ];
  expect(parseRoutes(`${lines.join("\n")}\n`)).toEqual([
    { device: "eth0", network: "0.0.0.0/0", metric: 100 },
    { device: "br-20a5364b726c", network: "192.168.160.0/20", metric: 0 },
  ]);
  expect(parseRoutes("")).toEqual([]);
});

test("if another program takes the range meanwhile, the next one is taken", async () => {
  const { engine, ranged } = engineWith(["172.19.0.0/16"], { taken: 2 });
  await createNetwork(engine, network, [], neverAborted);
  expect(ranged()).toEqual([[name, "172.19.0.0/16"]]);
});

test.each([
  ["docker", "1400", "--opt=com.docker.network.driver.mtu=1400"],
  ["docker", "9000", "--opt=com.docker.network.driver.mtu=9000"],
  ["docker", "1500", ""],
  ["docker", "none", ""],
  ["docker", "0", ""],
  ["podman", "1280", "--opt=mtu=1280"],
] as const)(
  "packets are as large as those of %s's own network, here %s",
  async (title, mtu, expected) => {
    const { engine, created } = engineWith(["10.89.0.0/24"], { kind: engineKinds[title], mtu });
    await createNetwork(engine, network, [], neverAborted);
    expect(created.at(-1)?.replace(/--subnet=\S+ --gateway=\S+ ?/, "")).toBe(expected);
  },
);

test("a network that something removes at once, such as a prune, is an error that says so", async () => {
  const { engine } = engineWith(["172.19.0.0/16"]);
  const ask: Engine["ask"] = async (request, signal) =>
    request.words.at(-1) === name ? "[]" : engine.ask(request, signal);
  const failure = await failureOf(createNetwork({ ...engine, ask }, network, [], neverAborted));
  expect(failure).toMatchObject({
    id: "engine-failed",
    message: "Docker no longer has the network that it created.",
    hint: expect.stringContaining("docker system prune"),
  });
});

test("without such a range, no network is left", async () => {
  const { engine, ranged } = engineWith(["172.18.0.0/16"]);
  expect((await failureOf(createNetwork(engine, network, known, neverAborted))).message).toBe(
    "no range is left",
  );
  expect(ranged()).toEqual([]);
});

test("an engine of which all ranges overlap is asked 32 times, and no network is left", async () => {
  const ranges = Array.from({ length: 40 }, (_, place) => `172.18.${place}.0/24`);
  const { engine, ranged, offered } = engineWith(ranges);
  const failure = await failureOf(createNetwork(engine, network, known, neverAborted));
  expect([failure.id, ranged(), new Set(offered).size]).toEqual(["capacity-lacking", [], 32]);
});

test("after an interrupt, no network is created", async () => {
  const { engine, offered } = engineWith(["172.19.0.0/16"]);
  const interrupted = AbortSignal.abort(new Error("interrupted"));
  expect((await failureOf(createNetwork(engine, network, known, interrupted))).message).toBe(
    "interrupted",
  );
  expect(offered).toEqual([]);
});

test("nodes get the addresses after the gateway's, and too small a range is an error", async () => {
  expect(addressesIn("172.19.0.0/16", 2)).toEqual(["172.19.0.1", "172.19.0.2", "172.19.0.3"]);
  expect(addressesIn("10.89.0.64/28", 13).at(-1)).toBe("10.89.0.78");
  expect(addressesIn("10.89.255.0/24", 253)).toEqual(expect.arrayContaining(["10.89.255.254"]));
  expect(addressesIn("10.0.0.0/16", 600)[300]).toBe("10.0.1.45");
  expect((await failureOf((async () => addressesIn("10.89.0.0/24", 254))())).id).toBe(
    "capacity-lacking",
  );
});

test.each([
  ["172.18.0.0/16", "172.18.255.1/24", true],
  ["172.18.0.0/24", "172.18.1.1/24", false],
  ["10.0.0.0/8", "10.200.0.1/24", true],
  ["0.0.0.0/1", "128.0.0.1/1", false],
  ["fd00::/64", "172.18.0.1/16", false],
])("%s and %s overlap: %p", (one, other, expected) => {
  expect([overlap(one, other), overlap(other, one)]).toEqual([expected, expected]);
});

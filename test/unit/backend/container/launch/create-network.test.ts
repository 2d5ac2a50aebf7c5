import { expect, test } from "bun:test";
import { engineFailure } from "../../../../../src/backend/container/engine/engine-errors.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import type { Engine } from "../../../../../src/backend/container/engine/engine.ts";
import {
  addressesIn,
  createNetworkApart,
  overlap,
} from "../../../../../src/backend/container/launch/create-network.ts";
import { failureOf } from "../../../../support/failure-of.ts";
import { neverAborted } from "../../../../support/never-aborted.ts";

const own = { clusterId: "copy", creationId: "0123456789abcdef" };
const network = { ...own, labels: { ...own, counts: "master=1 agent=0 public_agent=0" } };

const rangeTaken = engineFailure(engineKinds.docker, ["network"], {
  status: 1,
  stdout: "",
  stderr: "Error response from daemon: Pool overlaps with other one on this address space\n",
});

/** An engine that offers its lowest free range, of these. Somebody else takes those of `taken` for a moment after they were offered. */
function engineWith(ranges: readonly string[], taken = new Set<string>()) {
  const offered: string[] = [];
  const networks = new Map<string, { readonly Id: string; readonly Labels: object; readonly range: string }>();
  const change = async ({ words }: { readonly words: readonly string[] }): Promise<string> => {
    const name = words.at(-1)!;
    if (words[1] === "rm") networks.delete(name);
    else {
      const isFree = (each: string): boolean => [...networks.values()].every((made) => made.range !== each);
      const asked = words.flatMap((word) => /^--subnet=(.*)$/.exec(word)?.slice(1) ?? [])[0];
      if (asked !== undefined && (taken.delete(asked) || !isFree(asked))) throw rangeTaken;
      const range = asked ?? ranges.find(isFree);
      if (range === undefined) throw new Error("no range is left");
      const labels = words
        .flatMap((word) => [...word.matchAll(/^--label=([^=]*)=(.*)$/g)])
        .map(([, key, value]) => [key, value]);
      offered.push(range);
      networks.set(name, { Id: "f".repeat(64), Labels: Object.fromEntries(labels), range });
    }
    return "";
  };
  const ask = async ({ words }: { readonly words: readonly string[] }): Promise<string> => {
    const name = `cluster-e2e-copy-${own.creationId}`;
    const { range, ...made } = networks.get(name)!;
    const described = {
      ...made,
      Name: name,
      IPAM: { Config: [{ Subnet: "fd00::/64" }, { Subnet: range }, { Subnet: "192.0.2.0/24" }] },
    };
    return words[1] === "ls" ? made.Id : JSON.stringify([described]);
  };
  const ranged = (): readonly (readonly [name: string, range: string])[] =>
    [...networks].map(([name, { range }]) => [name, range]);
  return { engine: { kind: engineKinds.docker, ask, change } as unknown as Engine, ranged, offered };
}

const known = ["172.18.0.2/16", "172.20.0.3/16"];

test.each([
  [["172.19.0.0/16"], "172.19.0.0/16"],
  [["172.18.0.0/16", "172.18.4.0/24", "10.89.0.0/24", "10.89.1.0/24"], "10.89.0.0/24"],
])("of the ranges %p, a copy gets the first that has none of the private addresses", async (ranges, expected) => {
  const { engine, ranged } = engineWith(ranges);
  expect(await createNetworkApart(engine, network, known, neverAborted)).toBe(expected);
  expect(ranged()).toEqual([[`cluster-e2e-copy-${own.creationId}`, expected]]);
});

test("a range that somebody else takes between the offer and the request is requested again", async () => {
  const { engine, ranged } = engineWith(["172.19.0.0/16"], new Set(["172.19.0.0/16"]));
  expect(await createNetworkApart(engine, network, known, neverAborted)).toBe("172.19.0.0/16");
  expect(ranged()).toEqual([[`cluster-e2e-copy-${own.creationId}`, "172.19.0.0/16"]]);
});

test("nodes get the addresses after the gateway's, and too small a range is an error", async () => {
  expect(addressesIn("172.19.0.0/16", 2)).toEqual(["172.19.0.1", "172.19.0.2", "172.19.0.3"]);
  expect(addressesIn("10.89.255.0/24", 253)).toEqual(expect.arrayContaining(["10.89.255.254"]));
  expect(addressesIn("10.0.0.0/16", 600)[300]).toBe("10.0.1.45");
  expect((await failureOf((async () => addressesIn("10.89.0.0/24", 254))())).id).toBe("capacity-lacking");
});

test("without such a range, no network is left", async () => {
  const { engine, ranged } = engineWith(["172.18.0.0/16"]);
  expect((await failureOf(createNetworkApart(engine, network, known, neverAborted))).message).toBe("no range is left");
  expect(ranged()).toEqual([]);
});

test("an engine of which all ranges overlap is asked 32 times, and no network is left", async () => {
  const ranges = Array.from({ length: 40 }, (_, place) => `172.18.${place}.0/24`);
  const { engine, ranged, offered } = engineWith(ranges);
  const failure = await failureOf(createNetworkApart(engine, network, known, neverAborted));
  expect([failure.id, ranged(), new Set(offered).size]).toEqual(["capacity-lacking", [], 32]);
});

test("after an interrupt, no network is created", async () => {
  const { engine, offered } = engineWith(["172.19.0.0/16"]);
  const interrupted = AbortSignal.abort(new Error("interrupted"));
  expect((await failureOf(createNetworkApart(engine, network, known, interrupted))).message).toBe("interrupted");
  expect(offered).toEqual([]);
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

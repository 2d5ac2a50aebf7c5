import { expect, test } from "bun:test";
import { join } from "node:path";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { passageThrough } from "../../../../../src/backend/container/engine/passage.ts";
import { labelNames } from "../../../../../src/backend/container/records/labels.ts";
import {
  addressNumber,
  parseNetworkAddress,
  readContainers,
} from "../../../../../src/backend/container/records/read-containers.ts";
import { toClusters } from "../../../../../src/backend/container/records/records.ts";
import { hostileTexts, textsIn, unprintable } from "../../../../support/hostile-text.ts";

const creationId = "0123456789abcdef";
const name = `cluster-e2e-default-${creationId}`;
const shared = { [labelNames.clusterId]: "default", [labelNames.creationId]: creationId };
const labels = { ...shared, [labelNames.role]: "master", [labelNames.index]: "0" };
const network = { id: "ab".repeat(32), name, labels: shared };
const container = {
  Id: "cd".repeat(32),
  Name: "/cluster-e2e-default-master_0",
  Created: "2026-01-01T00:00:00Z",
  State: { Status: "running", ExitCode: 0, OOMKilled: false, Error: "" },
  Config: { Labels: labels },
  NetworkSettings: { Networks: { [name]: { IPAddress: "172.18.0.2" } }, Ports: {} },
};

const refusalOf = (containers: readonly unknown[], networks = [network]) => {
  const reading = readContainers({ containers, networks });
  return [
    reading.containers.length,
    ...reading.foreignResources.map(({ what, why }) => `${what}: ${why}`),
  ];
};

test("a container is a node where labels, name and network agree, whichever way the engine writes the name", () => {
  expect(refusalOf([container])).toEqual([1]);
  expect(refusalOf([{ ...container, Name: "cluster-e2e-default-master_0" }])).toEqual([1]);
});

// Shows R134.
test.each([
  ["its name does not match the node in its labels", { Name: "/innocent" }],
  ["its name does not match the node in its labels", { Name: "/cluster-e2e-default-master_1" }],
  [
    "it is not in the network of the cluster in its labels",
    { NetworkSettings: { Networks: { bridge: { IPAddress: "172.17.0.2" } } } },
  ],
  ["it is not in the network of the cluster in its labels", { NetworkSettings: {} }],
  ["its id is malformed", { Id: "--all" }],
  [
    "its label cluster-e2e.creation-id is malformed",
    { Config: { Labels: { ...labels, [labelNames.creationId]: "x/../../../.ssh" } } },
  ],
  [
    "its label cluster-e2e.role is missing, its label cluster-e2e.index is missing",
    { Config: { Labels: shared } },
  ],
])("a container is left alone when %s", (why, change) => {
  const shown = "Name" in change ? change.Name.slice(1) : "cluster-e2e-default-master_0";
  expect(refusalOf([{ ...container, ...change }])).toEqual([0, `container ${shown}: ${why}`]);
});

test("a container in a network that only has the right name is left alone", () => {
  expect(refusalOf([container], [])[0]).toBe(0);
  const impostor = {
    ...network,
    labels: { ...shared, [labelNames.creationId]: "fedcba9876543210" },
  };
  expect(refusalOf([container], [impostor])).toEqual([
    0,
    `network ${name}: its name is not the name of its cluster's network`,
    "container cluster-e2e-default-master_0: it is not in the network of the cluster in its labels",
  ]);
});

test.each([
  ["its id is malformed", { id: "--all" }],
  [
    "its label cluster-e2e.creation-id is missing",
    { labels: { [labelNames.clusterId]: "default" } },
  ],
])("a network is left alone when %s", (why, change) => {
  expect(refusalOf([], [{ ...network, ...change } as typeof network])).toEqual([
    0,
    `network ${name}: ${why}`,
  ]);
});

const mount = { Type: "volume", Name: "a1b2-c.d_e", Destination: "/var/lib/docker" };

test("a node's volumes are those whose names and paths can be words of a command", () => {
  const foreign = [
    { ...mount, Type: "bind", Name: undefined },
    { ...mount, Name: "--privileged" },
    { ...mount, Name: "/etc" },
    { ...mount, Name: "" },
    { ...mount, Name: ["a1b2"] },
    { ...mount, Destination: "relative" },
    { ...mount, Destination: "/a:/b" },
    { ...mount, Destination: "/" },
    { ...mount, Destination: ["/a"] },
    "volume",
    null,
  ];
  const read = (mounts: unknown) =>
    readContainers({ containers: [{ ...container, Mounts: mounts }], networks: [network] })
      .containers[0]?.volumes;
  expect(read([...foreign, mount])).toEqual([{ name: "a1b2-c.d_e", path: "/var/lib/docker" }]);
  for (const one of foreign) expect(read([one])).toEqual([]);
  expect(read("none")).toEqual([]);
});

test("what the engine tells in no known form is nobody's", () => {
  for (const nonsense of [
    undefined,
    null,
    1,
    "text",
    [],
    {},
    { Id: 1, Config: 1, NetworkSettings: 1, Name: 1 },
  ])
    expect(refusalOf([nonsense])[0]).toBe(0);
  const [node] = readContainers({
    containers: [{ ...container, State: 1, Created: 1 }],
    networks: [network],
  }).containers;
  expect(node).toMatchObject({ status: "", exitCode: 0, createdAt: undefined, error: undefined });
});

test("whatever labels, names, addresses and errors say, records stay in their shapes and within the root", () => {
  const texts = hostileTexts(3, 1000);
  const fields = Object.values(labelNames);
  texts.forEach((text, index) => {
    const field = fields[index % fields.length]!;
    const changed = { ...labels, [field]: text };
    const hostileNetworks = [
      network,
      { ...network, labels: { ...shared, [field]: text } },
      { id: text, name: text, labels },
    ];
    const containers = [
      { ...container, Config: { Labels: changed } },
      { ...container, Name: text },
      { ...container, State: { Status: text, ExitCode: 1, Error: text } },
      {
        ...container,
        NetworkSettings: {
          Networks: { [name]: { IPAddress: text } },
        },
      },
    ];
    const place = { root: "/root/of/it", passageTo: passageThrough(engineKinds.docker, {}) };
    const reading = readContainers({ containers, networks: hostileNetworks });
    for (const cluster of toClusters({ ...reading, abandoned: new Set() }, place)) {
      expect(join(cluster.directory)).toMatch(/^\/root\/of\/it\/[\w.-]+$/);
      for (const each of textsIn(cluster)) expect(each).not.toMatch(unprintable);
      for (const node of cluster.nodes) expect(node.ssh.host).toMatch(/^[0-9.]*$/);
    }
    for (const { what, why } of reading.foreignResources)
      expect(`${what} ${why}`).toMatch(/^[\x20-\x7E]{1,500}$/);
  });
});

test.each([
  ["172.18.0.2/16", "172.18.0.2/16"],
  ["172.18.0.2/1", "172.18.0.2/1"],
  ["172.18.0.2/32", "172.18.0.2/32"],
  ["172.18.0.2/016", "172.18.0.2/16"],
  ["172.18.0.2/0", undefined],
  ["172.18.0.2/33", undefined],
  ["172.18.0.2/1.5", undefined],
  ["172.18.0.2", undefined],
  ["172.18.0.2/16/x", undefined],
  ["--flag/16", undefined],
])("the address of a network %j is read as %p", (text, address) => {
  expect(parseNetworkAddress(text)).toBe(address);
});

test("addresses are numbered in the order in which an engine gives them", () => {
  expect(addressNumber("172.18.1.0") - addressNumber("172.18.0.255")).toBe(1);
});

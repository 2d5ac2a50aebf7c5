import { describe, expect, test } from "bun:test";
import { faultProblems, planFault } from "../../../../src/cluster/faults/plan-fault.ts";
import type { FaultRequest } from "../../../../src/platform/faults/fault-kinds.ts";
import type { ClusterRecord, NodeRecord, Role } from "../../../../src/model/cluster-record.ts";
import { exampleCluster } from "../../../support/install-example.ts";

const durationMs = 60_000;

test.each<[FaultRequest, number]>([
  [{ kind: "partition", between: ["all"], durationMs }, 0],
  [{ kind: "partition", between: ["all"], and: ["agents"], oneWay: true, durationMs }, 0],
  [{ kind: "network", nodes: ["all"], delayMs: 1, lossPercent: 100, rateKbits: 1, durationMs }, 0],
  [{ kind: "clock", nodes: ["all"], offsetMs: -1000, durationMs }, 0],
  [{ kind: "disk", nodes: ["all"], folder: "/", leaveBytes: 0, durationMs: 1000 }, 0],
  [
    {
      kind: "network",
      nodes: ["all"],
      lossPercent: 0.01,
      oneWay: false,
      and: [],
      durationMs: 24 * 3600_000,
    },
    0,
  ],
  [{ kind: "clock", nodes: ["all"], offsetMs: 20 * 24 * 3600_000, durationMs }, 0],
  [{ kind: "disk", nodes: ["all"], folder: "/", leaveBytes: 2 ** 50, durationMs }, 0],
  [
    {
      kind: "disk",
      nodes: ["all"],
      folder: "/",
      leaveBytes: 2 ** 50 + 1,
      oneWay: true,
      durationMs,
    },
    2,
  ],
  [{ kind: "clock", nodes: ["all"], offsetMs: 20 * 24 * 3600_000 + 1, durationMs }, 1],
  [{ kind: "partition", durationMs }, 1],
  [{ kind: "partition", between: [], nodes: ["agents"], durationMs }, 2],
  [{ kind: "network", nodes: ["all"], durationMs }, 1],
  [{ kind: "network", delayMs: 0, lossPercent: 0, rateKbits: 0, durationMs: 999 }, 5],
  [{ kind: "network", nodes: ["all"], delayMs: Number.NaN, durationMs: Number.NaN }, 2],
  [{ kind: "clock", nodes: ["all"], offsetMs: 999, durationMs }, 1],
  [{ kind: "clock", nodes: ["all"], delayMs: 5, durationMs: 24 * 3600_000 + 1 }, 3],
  [{ kind: "disk", nodes: ["all"], folder: "var", leaveBytes: -1, durationMs }, 2],
  [{ kind: "disk", nodes: ["all"], folder: "/a b%c*", durationMs }, 1],
  [{ kind: "partition", between: ["all"], until: "true", untilNodes: ["masters"], durationMs }, 0],
  [{ kind: "partition", between: ["all"], untilNodes: ["masters"], durationMs }, 1],
  [{ kind: "partition", between: ["all"], until: "true\nfalse", durationMs }, 1],
  [{ kind: "partition", shape: "ring", durationMs }, 0],
  [{ kind: "partition", shape: "star", durationMs }, 1],
  [{ kind: "partition", shape: "ring", and: ["agents"], durationMs }, 1],
  [{ kind: "network", nodes: ["all"], delayMs: 9, jitterMs: 3, reorderPercent: 5, durationMs }, 0],
  [
    { kind: "network", nodes: ["all"], lossPercent: 9, jitterMs: 3, reorderPercent: 5, durationMs },
    2,
  ],
  [{ kind: "network", nodes: ["all"], towards: ["agents"], durationMs }, 1],
  [{ kind: "process", nodes: ["all"], unit: "etcd", durationMs }, 0],
  [{ kind: "process", nodes: ["all"], durationMs }, 1],
  [{ kind: "process", nodes: ["all"], unit: "etcd", program: "etcd", durationMs }, 1],
  [{ kind: "process", nodes: ["all"], unit: "ssh.service", durationMs }, 1],
  [{ kind: "process", nodes: ["all"], program: "systemd", durationMs }, 1],
  [{ kind: "process", nodes: ["all"], program: "sshd-session", signal: "stop", durationMs }, 1],
  [
    {
      kind: "process",
      nodes: ["all"],
      unit: "cluster-e2e-deadline.service",
      signal: "stop",
      durationMs,
    },
    1,
  ],
  [{ kind: "pressure", nodes: ["all"], cpuPercent: 100, memoryPercent: 95, durationMs }, 0],
  [{ kind: "pressure", nodes: ["all"], cpuPercent: 0.5, memoryPercent: 96, durationMs }, 2],
  [{ kind: "pressure", nodes: ["all"], durationMs }, 1],
  [{ kind: "io", nodes: ["all"], ioFolder: "/data", durationMs }, 1],
  [{ kind: "io", nodes: ["all"], ioFolder: "/data", slowMs: 5_001, stall: true, durationMs }, 2],
  [{ kind: "io", nodes: ["all"], errorsPercent: 4, durationMs }, 2],
  [{ kind: "power", nodes: ["all"], durationMs }, 0],
  [{ kind: "power", durationMs }, 1],
  [{ kind: "process", nodes: ["all"], unit: "a/b", signal: "hup", durationMs }, 2],
])("%j has %d problems", (request, count) => {
  expect(faultProblems(request)).toHaveLength(count);
});

const node = (role: Role, index: number, changes: Partial<NodeRecord> = {}): NodeRecord => ({
  id: `${role}${index}`,
  role,
  index,
  state: "running",
  publicAddress: undefined,
  privateAddress: `10.0.${role.length}.${index}`,
  ssh: { host: "h", port: 22, user: "u" },
  web: { host: "h", httpPort: 80, httpsPort: 443 },
  ...changes,
});
const record: ClusterRecord = {
  ...exampleCluster([node("master", 0), node("master", 1), node("agent", 0)], "oss"),
  backend: "vm",
};

const sourcesOf = (
  request: Partial<FaultRequest>,
  cluster = record,
): Readonly<Record<string, unknown>> => {
  const planned = planFault(cluster, { kind: "partition", durationMs, ...request });
  return Object.fromEntries(
    planned.map(({ node: { id }, values, record: { kind } }) => [
      id,
      kind === "partition" ? String(values["SOURCES"]).split(" ") : kind,
    ]),
  );
};

describe("what each node does", () => {
  test("both sides of a path are concerned, whichever of them has the fault", () => {
    const peersOf = (request: FaultRequest): readonly unknown[] =>
      planFault(record, request).map(({ node: { id }, peers = [] }) => [
        id,
        ...peers.map((each) => each.id),
      ]);
    const towards = { towards: ["agent_0"], delayMs: 9, durationMs };
    const oneWay = { between: ["agent_0"], and: ["master_0"], oneWay: true, durationMs };
    expect(peersOf({ kind: "partition", ...oneWay })).toEqual([["master0", "agent0"]]);
    expect(peersOf({ kind: "network", nodes: ["master_0"], ...towards })).toEqual([
      ["master0", "agent0"],
    ]);
    expect(peersOf({ kind: "network", nodes: ["master_0"], delayMs: 9, durationMs })).toEqual([
      ["master0"],
    ]);
  });

  test("in a partition, it drops what comes from the other side; a node on both counts on the first", () => {
    expect(sourcesOf({ between: ["agent_0"], and: ["masters"] })).toEqual({
      master0: ["10.0.5.0"],
      master1: ["10.0.5.0"],
      agent0: ["10.0.6.0", "10.0.6.1"],
    });
    expect(sourcesOf({ between: ["master_0"], and: ["all"] })).toEqual(
      sourcesOf({ between: ["master_0"] }),
    );
    expect(sourcesOf({ between: ["master_0"], and: ["agent_0"], oneWay: true })).toEqual({
      agent0: ["10.0.6.0"],
    });
  });

  test.each([
    [5, 19, 1],
    [10, 9, 1],
    [50, 1, 1],
    [75, 1, 3],
    [100, 0, 1],
  ])("%d%% of errors are %d s without and %d s with them", (errorsPercent, UP, DOWN) => {
    const request = { kind: "io", nodes: ["agent_0"], ioFolder: "/data", durationMs } as const;
    const [part] = planFault(record, { ...request, errorsPercent });
    expect(part?.values).toMatchObject({ UP, DOWN, STALL: "", SLOW: 0 });
  });

  test.each([{ kind: "io", ioFolder: "/data", stall: true }, { kind: "power" }] as const)(
    "a container cannot have it: %j",
    (request) => {
      const given = { ...request, nodes: ["agent_0"] };
      expect(sourcesOf(given)).toEqual({ agent0: request.kind });
      expect(() => sourcesOf(given, { ...record, backend: "container" })).toThrow("Containers");
    },
  );

  test("a node without another one to send to is refused", () => {
    const slow = { kind: "network", delayMs: 9 } as const;
    expect(() => sourcesOf({ ...slow, nodes: ["all"], towards: ["agent_0"] })).toThrow(
      "agent_0 would send to no other node",
    );
    expect(sourcesOf({ ...slow, nodes: ["agent_0"], towards: ["all"] })).toEqual({
      agent0: "network",
    });
  });

  test("a node that does not run, an unknown one, and a side without nodes are errors", () => {
    const ids = (request: Partial<FaultRequest>, cluster = record) => {
      try {
        return sourcesOf(request, cluster);
      } catch (error) {
        return (error as { readonly id: string }).id;
      }
    };
    const stopped = {
      ...record,
      nodes: [node("master", 0), node("agent", 0, { state: "starting" })],
    };
    expect(ids({ between: ["agent_0"] }, stopped)).toBe("machine-failed");
    expect(ids({ between: ["master_0"] }, stopped)).toBe("bad-usage");
    expect(ids({ between: ["agent_7"] })).toBe("node-not-found");
    const paused = { ...record, nodes: [node("master", 0), node("agent", 0, { state: "paused" })] };
    expect(ids({ between: ["agent_0"] }, paused)).toBe("node-stopped");
    const unknown = {
      ...record,
      nodes: [node("master", 0), node("agent", 0, { privateAddress: undefined })],
    };
    expect(ids({ between: ["agent_0"] }, unknown)).toBe("machine-failed");
    expect(
      ids({ kind: "clock", nodes: ["all"], offsetMs: 5000 }, { ...record, backend: "container" }),
    ).toBe("bad-usage");
    expect(ids({ kind: "clock", nodes: ["masters"], offsetMs: 5000 })).toEqual({
      master0: "clock",
      master1: "clock",
    });
  });

  test.each<[Partial<FaultRequest>, string]>([
    [
      { between: ["agent_0"], and: ["masters"] },
      "partition between agent_0 and master_0, master_1",
    ],
    [{ between: ["agent_0"], oneWay: true }, "nothing from agent_0 arrives at master_0, master_1"],
    [{ kind: "network", nodes: ["masters"], lossPercent: 5 }, "loss 5% on master_0, master_1"],
    [{ kind: "clock", nodes: ["agent_0"], offsetMs: 5400 }, "clock +5 s on agent_0"],
    [{ kind: "clock", nodes: ["agent_0"], offsetMs: -5400 }, "clock -5 s on agent_0"],
    [{ kind: "disk", nodes: ["agent_0"], folder: "/var" }, "/var filled, 0 bytes left, on agent_0"],
    [
      { kind: "pressure", nodes: ["agent_0"], cpuPercent: 90, memoryPercent: 80 },
      "90% of the processors and 80% of the memory used on agent_0",
    ],
  ])("it is described: %j", (request, description) => {
    const planned = planFault(record, { kind: "partition", durationMs, ...request });
    expect(new Set(planned.map((each) => each.record.description))).toEqual(new Set([description]));
  });

  test.each([
    [5, "agent_0, agent_1, agent_2, agent_3, agent_4"],
    [7, "agent_0, agent_1, agent_2, agent_3, agent_4 and 2 more"],
  ])("of %d nodes, it names a few", (count, names) => {
    const many = {
      ...record,
      nodes: Array.from({ length: count }, (_, index) => node("agent", index)),
    };
    const [planned] = planFault(many, {
      kind: "clock",
      nodes: ["all"],
      offsetMs: 1000,
      durationMs,
    });
    expect(planned?.record.description).toBe(`clock +1 s on ${names}`);
  });

  test.each(["vm", "container"] as const)(
    "a full disk is shared on containers only: %s",
    (backend) => {
      const request = {
        kind: "disk",
        nodes: ["masters"],
        folder: "/var",
        leaveBytes: 7,
        durationMs,
      } as const;
      const values = { FILL: "/var", LEAVE: 7, SHARED: backend === "container" ? 2 : "" };
      for (const planned of planFault({ ...record, backend }, request))
        expect(planned).toMatchObject({ values, record: { links: [], measure: { FILL: "/var" } } });
    },
  );

  test.each(["vm", "container"] as const)(
    "pressure is within limits on containers: %s",
    (backend) => {
      const request = {
        kind: "pressure",
        nodes: ["masters"],
        memoryPercent: 62.55,
        durationMs,
      } as const;
      const measure = { CPU: 0, MEMORY: 626 };
      const values = { ...measure, SHARED: backend === "container" ? 2 : "" };
      for (const planned of planFault({ ...record, backend }, request))
        expect(planned).toMatchObject({ values, record: { measure: { CPU: "0", MEMORY: "626" } } });
    },
  );

  test("a slow network has everything that was asked for", () => {
    const effectOf = (request: Partial<FaultRequest>) =>
      planFault(record, { kind: "network", nodes: ["agent_0"], durationMs, ...request }).map(
        ({ values }) => [values["ADDRESS"], values["NETEM"]],
      );
    const address = "10.0.5.0";
    expect(effectOf({ delayMs: 200 })).toEqual([[address, "delay 200ms"]]);
    expect(effectOf({ lossPercent: 5, rateKbits: 64 })).toEqual([[address, "loss 5% rate 64kbit"]]);
  });

  test("a slow path is one to some nodes only", () => {
    const [planned] = planFault(record, {
      kind: "network",
      nodes: ["agent_0"],
      towards: ["masters"],
      delayMs: 200,
      jitterMs: 50,
      reorderPercent: 25,
      durationMs,
    });
    expect(planned).toMatchObject({
      values: { NETEM: "delay 200ms 50ms reorder 25%", TOWARDS: "10.0.6.0 10.0.6.1" },
      record: { links: ["10.0.6.0", "10.0.6.1"] },
    });
    expect(planned?.record.description).toContain("towards master_0, master_1 on agent_0");
  });

  test.each([
    [
      "halves",
      [
        [3, 4],
        [3, 4],
        [3, 4],
        [0, 1, 2],
        [0, 1, 2],
      ],
    ],
    [
      "ring",
      [
        [2, 3],
        [3, 4],
        [0, 4],
        [0, 1],
        [1, 2],
      ],
    ],
    ["bridge", [[3, 4], [3, 4], [], [0, 1], [0, 1]]],
    [
      "isolate",
      [
        [1, 2, 3, 4],
        [0, 2, 3, 4],
        [0, 1, 3, 4],
        [0, 1, 2, 4],
        [0, 1, 2, 3],
      ],
    ],
  ])("in the shape %s, each node drops what comes from some others", (shape, expected) => {
    const five = {
      ...record,
      nodes: Array.from({ length: 5 }, (_, index) => node("agent", index)),
    };
    const sources = sourcesOf({ shape }, five);
    const found = five.nodes.map(({ id }) =>
      ((sources[id] as string[] | undefined) ?? []).map((address) => Number(address.split(".")[3])),
    );
    expect(found).toEqual(expected);
  });

  test.each(["ring", "isolate"])("a cluster too small for a shape is refused: %s", (shape) => {
    const nodes = shape === "ring" ? record.nodes : record.nodes.slice(0, 1);
    expect(() => sourcesOf({ shape }, { ...record, nodes })).toThrow("cannot form this shape");
  });

  test("pings go to a few of the others, beginning with another one on each node", () => {
    const many = {
      ...record,
      nodes: Array.from({ length: 12 }, (_, index) => node("agent", index)),
    };
    const planned = planFault(many, { kind: "network", nodes: ["all"], delayMs: 5, durationMs });
    expect(new Set(planned.flatMap(({ record: { links } }) => links)).size).toBe(12);
    const few = planFault(record, { kind: "network", nodes: ["all"], delayMs: 5, durationMs });
    expect(few.map(({ record: { links } }) => links)).toEqual([
      ["10.0.6.1", "10.0.5.0"],
      ["10.0.5.0", "10.0.6.0"],
      ["10.0.6.0", "10.0.6.1"],
    ]);
    for (const {
      node: own,
      record: { links },
    } of planned)
      expect([links.length, links.includes(own.privateAddress!)]).toEqual([5, false]);
  });
});

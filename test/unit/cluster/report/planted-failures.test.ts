/** Reports on recorded logs of failures: the cause must be on the first screen, before the timeline. */
import { describe, expect, test } from "bun:test";
import { renderReport } from "../../../../src/cluster/report/render-report.ts";
import { reportParts } from "../../../../src/cluster/report/make-report.ts";
import { neverAborted } from "../../../support/never-aborted.ts";
import { type ClusterEvent, type NewEvent, readEvent } from "../../../../src/model/event.ts";

const start = Date.parse("2026-11-28T10:00:00Z");
const at = (seconds: number): string => new Date(start + seconds * 1000).toISOString();
const unix = (seconds: number): string => `${(start + seconds * 1000) / 1000}.000123`;
const event = (seconds: number, given: NewEvent): ClusterEvent => ({ ...given, at: at(seconds) });

const nodes = ["master_0", "master_1", "master_2"];
const run = { kind: "run", command: "./test.sh", nodes: ["master_0"] } as const;
const usual = [
  event(0, { kind: "phase", title: "Launch", course: "begun" }),
  event(20, { kind: "phase", title: "Launch", course: "done" }),
  ...nodes.map((node) => event(40, { kind: "check", node, isReady: true, text: "ready" })),
  event(60, { ...run, course: "begun" }),
];
const ended = event(120, { ...run, course: "failed", status: 1 });
const result = { isGood: false, text: "The command exited with status 1." };

const unknown = {
  cluster: undefined,
  clusterId: "nightly",
  directory: "",
  file: "",
  xml: [],
  facts: [],
  commands: [],
  nowMs: start + 200_000,
};

interface Given {
  readonly events?: readonly ClusterEvent[];
  readonly journals: Readonly<Record<string, readonly string[]>>;
  /** By how many milliseconds they are ahead. */
  readonly clocks?: Readonly<Record<string, string>>;
}

async function report({ events = [], journals, clocks = {} }: Given): Promise<string> {
  const boot = (node: string) => [
    `${unix(1)} ${node} kernel: Linux version 6.1.0`,
    `${unix(2)} ${node} systemd[1]: Starting cleanup with 0 errors...`,
    `${unix(3)} ${node} systemd[1]: Failed to open /dev/tpmrm0, ignoring`,
  ];
  const texts = Object.entries(journals).map(([node, lines]) => ({
    name: `${node}.journal.txt`,
    text: [...boot(node), ...lines].join("\n"),
  }));
  const parts = await reportParts(
    {
      ...unknown,
      result,
      texts: [
        ...texts,
        ...Object.entries(clocks).map(([node, text]) => ({ name: `${node}.clock.txt`, text })),
      ],
      events: [...usual, ...events, ended],
    },
    neverAborted,
  );
  return renderReport(parts, neverAborted);
}

/** The words before the timeline. */
const firstScreen = (html: string): string =>
  html
    .slice(html.indexOf("<h1"), html.indexOf("<h2>Timeline"))
    .replaceAll(/<[^>]*>/g, "")
    .replaceAll(/\s+/g, " ");

const partition = (seconds: number, course: "begun" | "healed"): ClusterEvent =>
  event(seconds, {
    kind: "fault",
    id: "0123abcd",
    fault: "partition",
    course,
    text: "partition between master_0 and master_1, master_2",
    nodes,
    seconds: 30,
  });

describe("the first screen names", () => {
  test("a full disk", async () => {
    const screen = firstScreen(
      await report({
        journals: {
          master_1: [
            `${unix(70)} master_1 etcd[412]: {"level":"fatal","msg":"failed to save WAL","error":"write /var/lib/etcd/wal/0.wal: no space left on device"}`,
            `${unix(70.5)} master_1 systemd[1]: etcd.service: Failed with result 'exit-code'.`,
          ],
          master_2: [`${unix(71)} master_2 etcd[401]: lost TCP streaming connection with peer`],
        },
      }),
    );
    expect(screen).toContain("Noticed 10:01:10.000 master_1 full disk etcd:");
    expect(screen).toContain("failed unit");
    expect(screen).toContain("status 1");
  });

  test("what came first, also if a command noticed only what followed", async () => {
    const failed = "etcd.service: Failed with result 'exit-code'.";
    const noticed = {
      kind: "noticed",
      node: "master_1",
      what: "failed unit",
      text: `systemd: ${failed}`,
    } as const;
    const screen = firstScreen(
      await report({
        events: [event(71, noticed)],
        journals: {
          master_1: [
            `${unix(70)} master_1 etcd[9]: cannot commit tx: no space left on device`,
            `${unix(71)} master_1 systemd[1]: ${failed}`,
          ],
        },
      }),
    );
    expect(screen).toMatch(/Noticed \S+ master_1 full disk etcd: .* failed unit systemd: etcd/);
  });

  test("the first errors since the command began whose result stands there", async () => {
    const earlier = { ...run, command: "restart" };
    const screen = firstScreen(
      await report({
        events: [
          event(41, { ...earlier, course: "begun" }),
          event(45, { ...earlier, course: "done", status: 0 }),
        ],
        journals: {
          master_0: [
            `${unix(43)} master_0 etcd[9]: failed to dial a peer that restarts`,
            `${unix(70)} master_0 etcd[9]: request timed out, no leader`,
          ],
          master_1: [`${unix(42)} master_1 dbus-daemon[9]: failed to set a limit`],
        },
      }),
    );
    expect(screen).toContain("master_0 etcd: request timed out, no leader");
    expect(screen).not.toMatch(/that restarts|set a limit/);
  });

  test("a partition that split the quorum, as what explains it", async () => {
    const screen = firstScreen(
      await report({
        events: [partition(65, "begun"), partition(95, "healed")],
        journals: {
          master_0: [
            `${unix(68)} master_0 etcd[412]: 8e9e05c52164694d lost leader at term 2`,
            `${unix(72)} master_0 etcd[412]: etcdserver: request timed out, no leader`,
            `${unix(80)} master_0 systemd[1]: app.service: Failed with result 'exit-code'.`,
          ],
        },
      }),
    );
    expect(screen).toContain("failed unit (explained by partition between master_0 and master_1");
    expect(screen).toMatch(
      /First error of each node 10:01:1\d\.000 master_0 etcd: etcdserver: request timed out, no leader|First error of each node 10:01:08/,
    );
  });

  test("a partition, also if no unit fails of it, and no more than the last faults", async () => {
    const journals = {
      master_0: [`${unix(72)} master_0 etcd[412]: etcdserver: request timed out, no leader`],
    };
    const screen = firstScreen(
      await report({ events: [partition(65, "begun"), partition(95, "healed")], journals }),
    );
    expect(screen).toContain(
      "Faults and power changes 10:01:05.000, 30.0 s partition between master_0 and master_1, master_2 First error",
    );
    const many = Array.from({ length: 9 }, (_, index) => partition(60 + index, "begun"));
    const last = firstScreen(await report({ events: many, journals }));
    expect(last).toContain("Faults and power changes, the last 6 10:01:03.000");
  });

  test("a node that was shut down", async () => {
    const power = { kind: "power", action: "Shut down", nodes: ["master_1"] } as const;
    const events = [
      event(65, { ...power, course: "begun" }),
      event(70, { ...power, course: "done" }),
    ];
    expect(firstScreen(await report({ events, journals: {} }))).toContain(
      "10:01:05.000, 5.0 s Shut down on master_1",
    );
  });

  test("what a command was told to ignore, but as that", async () => {
    const noticed = {
      kind: "noticed",
      node: "master_1",
      what: "failed unit",
      text: "systemd: app.service: Failed with result 'signal'.",
      isExplained: true,
      explanation: "a request to ignore it",
    } as const;
    const line = (seconds: number): string =>
      `${unix(seconds)} master_1 systemd[1]: app.service: Failed with result 'signal'.`;
    const screenAt = async (seconds: number): Promise<string> =>
      firstScreen(
        await report({ events: [event(70, noticed)], journals: { master_1: [line(seconds)] } }),
      );
    expect(await screenAt(70)).toContain("failed unit (explained by a request to ignore it)");
    expect(await screenAt(90)).not.toContain("a request to ignore it");
  });

  test("an OOM kill, also in a container's slice", async () => {
    const screen = firstScreen(
      await report({
        journals: {
          master_2: [
            `${unix(75)} master_2 kernel: Out of memory: Killed process 812 (java) total-vm:4096000kB, anon-rss:1900000kB`,
            `${unix(75.1)} master_2 systemd[1]: app.service: A process of this unit has been killed by the OOM killer.`,
            `${unix(75.2)} master_2 systemd[1]: app.service: Failed with result 'oom-kill'.`,
          ],
        },
      }),
    );
    expect(screen).toContain("Noticed 10:01:15.000 master_2 out of memory kernel: Out of memory");
  });

  test("a full disk during a partition, which explains no full disk", async () => {
    const html = await report({
      events: [partition(65, "begun"), partition(95, "healed")],
      journals: { master_0: [`${unix(70)} master_0 app[9]: write: No space left on device`] },
    });
    expect(firstScreen(html)).toContain("master_0 full disk app:");
    expect(firstScreen(html)).not.toContain("full disk (explained");
  });
});

test.each([
  ["partition", "failed unit", "app.service: Failed with result 'exit-code'.", true],
  ["partition", "clock jump", "systemd[1]: Time has been changed", false],
  ["clock", "clock jump", "systemd[1]: Time has been changed", true],
  ["disk", "full disk", "write: No space left on device", true],
  ["process", "core dump", "Process 9 (app) dumped core.", false],
  ["process", "out of memory", "Out of memory: Killed process 9 (app)", false],
  ["of-a-newer-program", "failed unit", "app.service: Failed with result 'signal'.", false],
  ["constructor", "failed unit", "app.service: Failed with result 'signal'.", false],
])(
  "a %s fault and a %s: explained as the fault's row says",
  async (kind, what, line, isExplained) => {
    const fault = { kind: "fault", id: "0123abcd", fault: kind, text: "the fault", nodes } as const;
    const screen = firstScreen(
      await report({
        events: [event(65, { ...fault, course: "begun", seconds: 30 })],
        journals: { master_1: [`${unix(70)} master_1 app[9]: ${line}`] },
      }),
    );
    expect(screen).toContain(
      `master_1 ${what} ${isExplained ? "(explained by the fault)" : "app:"}`,
    );
  },
);

test("what began last explains a failure", async () => {
  const killed: ClusterEvent = event(70, {
    kind: "fault",
    id: "4567abcd",
    fault: "process",
    course: "begun",
    text: "app.service dead on master_0",
    nodes: ["master_0"],
    seconds: 30,
  });
  const { noticed } = await reportParts(
    {
      ...unknown,
      events: [...usual, partition(65, "begun"), killed, ended],
      texts: [
        {
          name: "master_0.journal.txt",
          text: `${unix(71)} master_0 systemd[1]: app.service: Failed with result 'signal'.`,
        },
      ],
    },
    neverAborted,
  );
  expect(noticed.map(({ explanation }) => explanation)).toEqual(["app.service dead on master_0"]);
});

test("the first error has a time, if any error has one", async () => {
  const parts = await reportParts(
    {
      ...unknown,
      events: [...usual, ended],
      texts: [
        { name: "master_0.console.log", text: "Failed to create symlink\n" },
        { name: "master_0.journal.txt", text: `${unix(50)} master_0 app[1]: error: no port` },
      ],
    },
    neverAborted,
  );
  expect(firstScreen(await renderReport(parts, neverAborted))).toContain(
    "10:00:50.000 master_0 app: error: no port",
  );
});

test.each([
  ["Shut down", 10, true],
  ["Shut down", 60, false],
  ["Start", 30, true],
  ["Start", 90, false],
])(
  "a power change (%s) explains what follows after %d s: %p",
  async (action, seconds, isExplained) => {
    const power = { kind: "power", action, nodes } as const;
    const screen = firstScreen(
      await report({
        events: [event(65, { ...power, course: "begun" }), event(66, { ...power, course: "done" })],
        journals: {
          master_1: [
            `${unix(66 + seconds)} master_1 systemd[1]: app.service: Failed with result 'signal'.`,
          ],
        },
      }),
    );
    expect(screen.includes("(explained by")).toBe(isExplained);
  },
);

test("equal commands at the same time have a bar each", async () => {
  const both = [
    event(61, { ...run, course: "begun" }),
    event(90, { ...run, course: "done", status: 0 }),
  ];
  const html = await report({ events: both, journals: {} });
  expect(html.match(/<title>master_0: .\/test.sh, /g)).toHaveLength(2);
});

test("a timeline of any size is bounded, and says what it left out", async () => {
  const long = "&".repeat(1000);
  const checks = Array.from({ length: 3000 }, (_, index) =>
    event(index / 100, { kind: "check", node: "master_0", isReady: index % 2 === 0, text: long }),
  );
  const phases = Array.from({ length: 3000 }, (_, index) => [
    event(index, { kind: "phase", title: `${index} ${long}`, course: "begun" }),
    event(index + 1, { kind: "phase", title: `${index} ${long}`, course: "done" }),
  ]);
  const html = await report({
    events: [...checks, ...phases.flat()],
    journals: {
      master_0: Array.from({ length: 30_000 }, () => `${unix(70)} m a[1]: ${"x".repeat(99)}`),
    },
  });
  expect(Buffer.byteLength(html)).toBeLessThan(5_000_000);
  expect(html).toMatch(/\d+ items of the timeline, because this file has a limit/);
});

describe("hostile logs", () => {
  test("stay text, and the page's policy allows no script but its own", async () => {
    const html = await report({
      journals: {
        master_0: [
          `${unix(70)} <b>x</b> <img/src=x>[1]: error </script><script>alert(1)</script> \u001B]0;x\u0007 \u202E`,
          `99999999999.123 master_0 app[1]: fatal from the year 5138`,
          `2026-99-99T99:99:99Z error in no month`,
          `${unix(71)} master_0 " onclick="alert(1): error`,
        ],
      },
    });
    expect(html).not.toContain("<script>alert");
    expect(html).not.toContain("<img");
    for (const character of ["\u0007", "\u001B", "\u202E"]) expect(html).not.toContain(character);
    expect(html.match(/<script>/g)).toHaveLength(1);
    expect(html).toMatch(/default-src 'none'; style-src 'sha256-[^']+'; script-src 'sha256-[^']+'/);
  });

  test("fail nothing with a clock or a date that cannot be", async () => {
    const html = await report({
      journals: { master_0: [`${unix(70)} master_0 app[1]: fatal`] },
      clocks: { master_0: "999999999999999 ms" },
    });
    expect(firstScreen(html)).toContain("10:01:10.000 master_0");
    const later = { journals: { master_0: [`${unix(3 * 86_400)} master_0 app[1]: fatal`] } };
    expect(firstScreen(await report(later))).toContain("2026-12-01 10:00:00.000 master_0");
    const impossible = { ...usual[0], at: "2026-99-99T00:00:00.000Z" };
    expect(readEvent(impossible)).toBeUndefined();
    expect(readEvent(usual[0])).toEqual(usual[0]);
  });

  test("of any size make a bounded page in linear time, which says what it left out", async () => {
    const flood = [
      ...Array.from(
        { length: 200_000 },
        (_, index) => `${unix(70)} m app[1]: line ${index} ${"&".repeat(80)}`,
      ),
      "x".repeat(20_000_000),
      `${unix(80)} master_1 kernel: Out of memory: Killed process 1 (a)`,
    ];
    const html = await report({ journals: { master_0: flood, master_1: flood.slice(-1) } });
    expect(html.length).toBeLessThan(5_000_000);
    expect(html).toMatch(/\d+ lines of the logs, because this file has a limit/);
    expect(firstScreen(html)).toContain("master_1 out of memory");
  });
});

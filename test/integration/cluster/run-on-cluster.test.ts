/** `run` connects to the last known address, and asks the backend only if nothing is known or if that address leads to no login. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { ClusterError } from "../../../src/errors.ts";
import type { ClusterRecord } from "../../../src/model/cluster-record.ts";
import type { Checkout } from "../../../src/platform/checkout/checkout.ts";
import { freePort } from "../../support/free-port.ts";
import {
  opensshLack,
  type OpensshServer,
  startOpensshServer,
} from "../../support/openssh-server.ts";
import { clusterAt, type Given, gone, never, type Ran, runAt } from "./run-at.ts";

describe.skipIf(opensshLack !== undefined)(
  `running on a cluster that is asked about (${opensshLack ?? "here"})`,
  () => {
    const hold: { server?: OpensshServer; other?: OpensshServer } = {};
    const server = (): OpensshServer => hold.server!;
    const run = (given: Given): Promise<Ran> => runAt(server(), given);
    beforeAll(async () => {
      [hold.server, hold.other] = await Promise.all([
        startOpensshServer([]),
        startOpensshServer([]),
      ]);
    });
    afterAll(async () => {
      await hold.server![Symbol.asyncDispose]();
      await hold.other![Symbol.asyncDispose]();
    });

    const connectionsTo = async (to: OpensshServer): Promise<number> =>
      (await to.log()).split("Connection from ").length - 1;
    const loginsTo = async (to: OpensshServer): Promise<number> =>
      (await to.log()).split("Accepted ").length;

    test("a command needs no answer if the node has the pinned key", async () => {
      const known = clusterAt(server().port);
      expect(await run({ known, answer: never })).toMatchObject({ status: 7, times: 1, asked: 0 });
    });

    test("without a last record the answer decides", async () => {
      const found = await run({ known: undefined, answer: async () => clusterAt(server().port) });
      expect(found).toMatchObject({ status: 7, times: 1, asked: 1, knows: "0123456789abcdef" });
      const lost = await run({ known: undefined, answer: () => Promise.reject(gone) });
      expect(lost).toMatchObject({
        status: gone,
        times: 0,
        wasConnecting: false,
        knows: undefined,
      });
    });

    test.each([
      ["whose recorded end has passed", { expiresAt: new Date("2026-01-01T02:00:00Z") }],
      ["that was not complete", { state: "incomplete" as const }],
    ])("a cluster %s is asked about before anything is sent to it", async (_what, change) => {
      const known = { ...clusterAt(server().port), ...change };
      const before = await loginsTo(server());
      const ran = await run({ known, answer: () => Promise.reject(gone) });
      expect(ran).toMatchObject({ status: gone, times: 0, asked: 1, wasConnecting: false });
      expect(await loginsTo(server())).toBe(before);
    });

    test.each([
      ["gone", () => Promise.reject(gone), { status: gone, times: 0, wasConnecting: false }],
      ["elsewhere now", async () => clusterAt(server().port), { status: 7, times: 1 }],
    ])(
      "no login reaches another machine that has taken the address of a cluster that is %s",
      async (_, answer, expected) => {
        const before = await loginsTo(hold.other!);
        expect(await run({ known: clusterAt(hold.other!.port), answer })).toMatchObject({
          ...expected,
          asked: 1,
        });
        expect(await loginsTo(hold.other!)).toBe(before);
      },
    );

    test("a cluster that is gone is reported if nobody listens", async () => {
      const known = clusterAt(await freePort());
      const ran = await run({ known, answer: () => Promise.reject(gone) });
      expect(ran).toMatchObject({ status: gone, times: 0, asked: 1, wasConnecting: false });
    });

    test("if neither the node nor the API answers, the API's error is reported", async () => {
      const failed = new ClusterError("cloud-failed", "The API is down.", {});
      const ran = await run({
        known: clusterAt(await freePort()),
        answer: () => Promise.reject(failed),
      });
      expect(ran).toMatchObject({ status: failed, times: 0, wasConnecting: false });
    });

    test("a command that has begun is never run again", async () => {
      await using own = await startOpensshServer([]);
      const known = clusterAt(own.port);
      const ran = await run({ known, answer: never, own, end: `kill -KILL ${own.pid} $PPID` });
      expect(ran).toMatchObject({
        status: { id: "connection-failed" },
        times: 1,
        asked: 0,
        wasConnecting: true,
      });
    });

    test.each([
      ["another creation of the same id", "fedcba9876543210"],
      ["the same creation with a replaced node", "0123456789abcdef"],
    ])("%s is used instead", async (_what, creationId) => {
      const known = clusterAt(await freePort());
      const answer = async (): Promise<ClusterRecord> =>
        clusterAt(server().port, creationId, "i-1");
      expect(await run({ known, answer })).toMatchObject({ status: 7, times: 1, asked: 1 });
    });

    test("of several masters, one that answers is used", async () => {
      const cluster = clusterAt(server().port);
      const [node] = cluster.nodes;
      const silent = {
        ...node!,
        id: "i-2",
        index: 1,
        ssh: { ...node!.ssh, port: await freePort() },
      };
      const both = { ...cluster, nodes: [silent, node!] };
      expect(await run({ known: undefined, answer: async () => both })).toMatchObject({
        status: 7,
        times: 1,
      });
    });

    test("an agent is no substitute for a master that has ended", async () => {
      const cluster = clusterAt(server().port);
      const [node] = cluster.nodes;
      const agent = { ...node!, id: "i-2", role: "agent" as const };
      const ended = { ...cluster, nodes: [{ ...node!, state: "ended" as const }, agent] };
      const ran = await run({ known: undefined, answer: async () => ended });
      expect(ran).toMatchObject({
        status: { id: "node-not-found" },
        times: 0,
        wasConnecting: false,
      });
    });

    test("a node that the last record lacks is looked up in the answer", async () => {
      const known = clusterAt(server().port);
      const [node] = known.nodes;
      const grown = {
        ...known,
        nodes: [...known.nodes, { ...node!, id: "i-2", role: "agent" as const }],
      };
      expect(await run({ known, answer: async () => grown, node: "agent_0" })).toMatchObject({
        status: 7,
        times: 1,
      });
      const missing = await run({ known, answer: async () => known, node: "agent_0" });
      expect(missing).toMatchObject({ status: { id: "node-not-found" }, wasConnecting: false });
    });

    test("a connection that fails is reported as such once the cluster is known to exist", async () => {
      const foreign = clusterAt(hold.other!.port);
      const before = await connectionsTo(hold.other!);
      const changed = await run({ known: foreign, answer: async () => foreign });
      expect(changed).toMatchObject({
        status: { id: "host-key-changed" },
        times: 0,
        wasConnecting: true,
      });
      // One by ssh, and one to find out why it failed.
      expect((await connectionsTo(hold.other!)) - before).toBe(2);
    });

    test("a checkout is sent only to a cluster that is known to exist", async () => {
      const known = clusterAt(server().port);
      const before = await connectionsTo(server());
      const ran = await run({
        known,
        answer: () => Promise.reject(gone),
        checkout: {} as Checkout,
      });
      expect(ran).toMatchObject({ status: gone, times: 0, wasConnecting: false });
      expect(await connectionsTo(server())).toBe(before);
    });
  },
);

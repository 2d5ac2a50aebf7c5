/** `run` on a cluster whose last known address is silent, and what an interrupt ends. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { ClusterError } from "../../../src/errors.ts";
import type { ClusterRecord } from "../../../src/model/cluster-record.ts";
import { argumentLists } from "../../support/argument-lists.ts";
import { freePort } from "../../support/free-port.ts";
import {
  opensshLack,
  type OpensshServer,
  startOpensshServer,
} from "../../support/openssh-server.ts";
import { until } from "../../support/until.ts";
import { clusterAt, type Given, gone, never, type Ran, runAt } from "./run-at.ts";

interface Silent extends AsyncDisposable {
  readonly port: number;
  /** Resolves with the first connection. */
  readonly met: Promise<void>;
  /** From now on it passes all connections on to the usual server. */
  readonly answer: () => void;
}

describe.skipIf(opensshLack !== undefined)(
  `running on a cluster that takes its time (${opensshLack ?? "here"})`,
  () => {
    const hold: { server?: OpensshServer } = {};
    const server = (): OpensshServer => hold.server!;
    const run = (given: Given): Promise<Ran> => runAt(server(), given);
    beforeAll(async () => {
      hold.server = await startOpensshServer([]);
    });
    afterAll(async () => hold.server![Symbol.asyncDispose]());

    /** A server that accepts connections and passes them on when told to. */
    async function silentServer(): Promise<Silent> {
      const [met, answering] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
      const listener = createServer((socket) => {
        socket.on("error", () => {});
        met.resolve();
        const passOn = (): void => {
          const onward = connect(server().port, "127.0.0.1").on("error", () => {});
          socket.pipe(onward).pipe(socket);
        };
        answering.promise.then(passOn, () => {});
      }).listen(0, "127.0.0.1");
      await once(listener, "listening");
      return {
        port: (listener.address() as AddressInfo).port,
        met: met.promise,
        answer: answering.resolve,
        [Symbol.asyncDispose]: async () => void listener.close(),
      };
    }

    // ssh itself, and the search for a master that answers, would give up after 15 s.
    describe.each([1, 2])("a cluster of %d, whose known addresses are silent,", (masters) => {
      const silentCluster = (port: number): ClusterRecord => {
        const cluster = clusterAt(port);
        const node = cluster.nodes[0]!;
        const nodes = Array.from({ length: masters }, (_, index) => ({
          ...node,
          id: `i-${index}`,
          index,
        }));
        return { ...cluster, nodes };
      };

      test.each([
        [
          "reported as gone",
          () => Promise.reject(gone),
          { status: gone, times: 0, wasConnecting: false },
        ],
        ["used at its new address", async () => clusterAt(server().port), { status: 7, times: 1 }],
      ])("is %s after two seconds", async (_what, answer, expected) => {
        await using silent = await silentServer();
        const ran = await run({ known: silentCluster(silent.port), answer });
        expect(ran).toMatchObject({ ...expected, asked: 1 });
      });

      test.each([
        ["the same", async () => silentCluster(1)],
        [
          "a failure",
          () => Promise.reject(new ClusterError("cloud-failed", "The API is down.", {})),
        ],
      ])("is waited for if the answer is %s", async (_what, answer) => {
        await using silent = await silentServer();
        const known = silentCluster(silent.port);
        const slow = async (): Promise<ClusterRecord> => {
          setTimeout(silent.answer, 100);
          return { ...(await answer()), nodes: known.nodes };
        };
        expect(await run({ known, answer: slow })).toMatchObject({ status: 7, times: 1, asked: 1 });
      });
    });

    test("a silent node is named after some seconds, once", async () => {
      await using silent = await silentServer();
      const known = clusterAt(silent.port);
      const answer = async (): Promise<ClusterRecord> => {
        setTimeout(silent.answer, 4_000);
        return known;
      };
      const notes = ["Waiting for master_0 to answer over SSH."];
      expect(await run({ known, answer })).toMatchObject({ status: 7, times: 1, notes });
    });

    describe("an interrupt", () => {
      const interrupted = new Error("interrupted");
      const stopAfter = (event: Promise<unknown>): AbortSignal => {
        const stop = new AbortController();
        event.then(
          () => stop.abort(interrupted),
          () => {},
        );
        return stop.signal;
      };

      test("ends the wait for the backend", async () => {
        const asked = Promise.withResolvers<void>();
        const answer = (inner: AbortSignal): Promise<never> => (asked.resolve(), never(inner));
        const stop = stopAfter(asked.promise);
        expect(await run({ known: undefined, answer, stop })).toMatchObject({
          status: interrupted,
          times: 0,
        });
        expect(
          await run({ known: clusterAt(await freePort()), answer, stop: stopAfter(asked.promise) }),
        ).toMatchObject({ status: interrupted, times: 0 });
      });

      test("ends a login before and after the backend is asked", async () => {
        await using silent = await silentServer();
        const known = clusterAt(silent.port);
        const early = await run({ known, answer: never, stop: stopAfter(silent.met) });
        expect(early).toMatchObject({ status: interrupted, times: 0, asked: 0 });
        const asked = Promise.withResolvers<void>();
        const answer = (inner: AbortSignal): Promise<never> => (asked.resolve(), never(inner));
        const late = await run({ known, answer, stop: stopAfter(asked.promise) });
        expect(late).toMatchObject({ status: interrupted, times: 0, asked: 1, wasAborted: true });
      });

      test("ends a command that runs", async () => {
        const running = Promise.withResolvers<void>();
        const onStart = (ran: string): void =>
          void until("the command runs", () => existsSync(ran)).then(() => running.resolve());
        const end = "sleep 72";
        const stop = stopAfter(running.promise);
        const ran = await run({
          known: clusterAt(server().port),
          answer: never,
          end,
          stop,
          onStart,
        });
        expect(ran).toMatchObject({ status: interrupted, times: 1, wasConnecting: true });
        const isSleeper = (list: string): boolean =>
          list.split("\0").join(" ").startsWith("sleep 72");
        await until("the command has ended", () => !argumentLists().some(isSleeper));
      });
    });
  },
);

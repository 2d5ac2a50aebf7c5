import { expect, test } from "bun:test";
import { runOnCluster } from "../../../src/cluster/run-on-cluster.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { silentProgress } from "../../support/silent-progress.ts";
import { failureOf } from "../../support/failure-of.ts";

test("an interrupt ends the wait for the backend", async () => {
  const stop = new AbortController();
  const asked = Promise.withResolvers<void>();
  const work = {
    backend: { name: "cloud" as const },
    clusterId: "demo",
    find: (inner: AbortSignal): Promise<never> => {
      asked.resolve();
      return new Promise((_resolve, reject) =>
        inner.addEventListener("abort", () => reject(inner.reason)),
      );
    },
    request: {} as never,
  };
  const runtime = {
    environment: {},
    clock: systemClock,
    progress: silentProgress,
    onConnecting: () => {},
  };
  const ended = failureOf(runOnCluster({ ...runtime, signal: stop.signal }, work));
  await asked.promise;
  stop.abort(new Error("interrupted"));
  expect((await ended).message).toBe("interrupted");
});

import type { Backend, Creation } from "../../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createCluster } from "../../../../src/cluster/create.ts";
import { ClusterError } from "../../../../src/errors.ts";
import {
  beginCreation,
  creationDirectory,
  endCreation,
} from "../../../../src/store/creation-folder.ts";
import { passedMs, systemClock } from "../../../../src/system/runtime.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { recordingProgress } from "../../../support/recording-progress.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const claimed = new ClusterError("cluster-exists", "Somebody has claimed the id.");
const request = {
  clusterId: "demo",
  ownKey: undefined,
  keepOnFailure: false,
  machines: {
    variant: "oss",
    distribution: "debian-12",
    counts: { master: 1, agent: 0, public_agent: 0 },
    options: {},
  },
  installation: undefined,
  onAbandon: () => ({ [Symbol.dispose]: () => {} }),
} as const;

/** Creates a cluster whose state is below this folder, up to the claim of its id. */
async function create(
  state: string,
  remove: Backend<never>["remove"],
  stop = new AbortController(),
  clusterId: string = request.clusterId,
) {
  const { progress, steps, told } = recordingProgress();
  const detail = (level: number, text: string): void =>
    void told.push(`-${"v".repeat(level)}: ${text}`);
  const runtime = {
    environment: { XDG_STATE_HOME: state },
    clock: systemClock,
    progress: { ...progress, detail },
  };
  const order: string[] = [];
  const backend: Partial<Backend<never>> = {
    name: "container",
    remove: async (name, signal) => {
      await remove(name, signal);
      order.push("removed");
    },
  };
  const creation = {
    summary: { lines: [["Image", "debian-12"]], facts: {} },
    claim: async () => {
      order.push("claim");
      throw claimed;
    },
    remains: () => undefined,
  } as unknown as Creation;
  const limited = { ...request, clusterId, deadlineMs: passedMs(systemClock) + 60_000 };
  const place = {
    backend: { ...backend, plan: async () => creation } as unknown as Backend<unknown>,
    install: undefined,
  };
  const failure = await failureOf(
    createCluster({ ...runtime, signal: stop.signal }, limited, place),
  );
  return { failure, steps, told, order };
}

test("if the cluster's folder can't be written, it says which folder to set", async () => {
  await using scratch = await scratchFolder();
  const file = join(scratch.path, "file");
  await writeFile(file, "");
  const { failure } = await create(file, async () => {});
  expect(failure.id).toBe("machine-not-set-up");
  expect(failure.message).toBe(
    `Cannot create the cluster's folder in ${file}/cluster-e2e/container: not a directory.`,
  );
  expect(failure.hint).toContain("nothing was launched. Set XDG_STATE_HOME");
});

test("if ssh couldn't use a key in the state folder, nothing is created", async () => {
  await using scratch = await scratchFolder();
  const { failure, order } = await create(join(scratch.path, 'a"b'), async () => {});
  expect(failure).toMatchObject({
    id: "machine-not-set-up",
    message: expect.stringContaining("Cannot pass the path"),
  });
  expect([order, await readdir(scratch.path)]).toEqual([[], []]);
});

const interrupted = "0123456789abcdef";

/** Leaves the folder of an interrupted creation below this folder, and returns its path. */
async function interruptedCreation(
  state: string,
  creationId = interrupted,
  clusterId = "demo",
): Promise<string> {
  const directory = creationDirectory(
    join(state, "cluster-e2e", "container"),
    clusterId,
    creationId,
  );
  await beginCreation(directory, clusterId, creationId);
  await endCreation(directory, "abandoned");
  return directory;
}

/** Creates a cluster after an interrupted creation of the same id. */
async function createAfter(
  state: string,
  remove: Backend<never>["remove"],
  stop = new AbortController(),
) {
  const directory = await interruptedCreation(state);
  const outcome = await create(state, remove, stop);
  return { ...outcome, isLeft: existsSync(directory) };
}

const title = "Remove the remains of an interrupted create";

test("the remains of an interrupted create are removed before the id is claimed", async () => {
  await using scratch = await scratchFolder();
  const { failure, steps, told, isLeft } = await createAfter(scratch.path, async () => {});
  expect(failure).toBe(claimed);
  expect({ steps, told, isLeft }).toEqual({
    steps: [`${title}: done`],
    told: ["-v: Image: debian-12"],
    isLeft: false,
  });
});

test("the id is claimed only after the remains of all interrupted creates are removed", async () => {
  await using scratch = await scratchFolder();
  await interruptedCreation(scratch.path, interrupted);
  const other = await interruptedCreation(scratch.path, "fedcba9876543210");
  const { order } = await create(scratch.path, async ({ creationId }) => {
    if (creationId === interrupted)
      await until("the other one is removed", () => !existsSync(other));
  });
  expect(order).toEqual(["removed", "removed", "claim"]);
});

test("a create with a generated id removes the remains of all generated ids, and of no other", async () => {
  await using scratch = await scratchFolder();
  const directories: Record<string, string> = {};
  for (const id of ["once-00000001", "once-00000002", "once-mine", "demo"])
    directories[id] = await interruptedCreation(scratch.path, interrupted, id);
  const removed: string[] = [];
  await create(
    scratch.path,
    async ({ id }) => void removed.push(id),
    new AbortController(),
    "once-fedcba98",
  );
  expect(removed.toSorted()).toEqual(["once-00000001", "once-00000002"]);
  const isLeft = Object.entries(directories).filter(([, directory]) => existsSync(directory));
  expect(isLeft.map(([id]) => id)).toEqual(["once-mine", "demo"]);
});

test("without remains, no step is shown", async () => {
  await using scratch = await scratchFolder();
  const { failure, steps } = await create(scratch.path, async () => {});
  expect([failure, steps]).toEqual([claimed, []]);
});

test("remains that can't be removed are reported, and the create goes on", async () => {
  await using scratch = await scratchFolder();
  const left = new ClusterError("cloud-failed", "A network is left.");
  const { failure, steps, told, isLeft } = await createAfter(scratch.path, async () =>
    Promise.reject(left),
  );
  expect(failure).toBe(claimed);
  expect({ steps, isLeft }).toEqual({ steps: [`${title}: done`], isLeft: true });
  expect(told).toContain("A network is left.");
});

test.each([
  ["a failure that may pass", new ClusterError("cloud-failed", "It is busy.", { transient: true })],
  ["a bug", new TypeError("A bug")],
])("%s during their removal ends the create", async (_, error) => {
  await using scratch = await scratchFolder();
  const { failure, steps, isLeft } = await createAfter(scratch.path, async () =>
    Promise.reject(error),
  );
  expect(failure as Error).toBe(error);
  expect({ steps, isLeft }).toEqual({ steps: [`${title}: failed`], isLeft: true });
});

test("an interruption during their removal ends the create, and is no warning", async () => {
  await using scratch = await scratchFolder();
  const stop = new AbortController();
  const remove = async (): Promise<void> => {
    stop.abort(new Error("interrupted"));
    throw new ClusterError("cloud-failed", "The request was cut off.");
  };
  const { failure, told } = await createAfter(scratch.path, remove, stop);
  expect(failure.message).toBe("interrupted");
  expect(told).not.toContain("The request was cut off.");
});

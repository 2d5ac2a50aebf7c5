/**
 * `destroy` of one cluster or of all, with and without confirmation, whatever is left of them. The clusters here
 * consist only of labels.
 */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { executablePath } from "./support/executable.ts";
import {
  docker,
  nodeImage,
  pathWithEngine,
  startTestContainers,
} from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const state: { containers?: TestContainers; environment?: Readonly<Record<string, string>> } = {};
const containers = (): TestContainers => state.containers!;
const ids = (): readonly string[] => ["one", "two"].map((name) => containers().id(name));

const anyCluster = "--filter=label=cluster-e2e.cluster-id";

beforeAll(async () => {
  state.containers = await startTestContainers();
  // `--all` must never mean clusters of whoever runs the tests: this docker lists those of this file alone.
  const own = `label=cluster-e2e.test=${containers().id("")}`;
  const lines = `words=(); for word; do
  [ "$word" != '${anyCluster}' ] || word='--filter=${own}'
  words+=("$word")
done
set -- "\${words[@]}"`;
  state.environment = { PATH: await pathWithEngine(containers().folder, "docker", () => lines) };
});

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

const creationId = "0123456789abcdef";

/** A network with a cluster's name and labels is a cluster. */
const make = (id: string): Promise<string> => {
  const labels = [
    `--label=cluster-e2e.cluster-id=${id}`,
    `--label=cluster-e2e.creation-id=${creationId}`,
    `--label=cluster-e2e.test=${containers().id("")}`,
  ];
  return docker(["network", "create", ...labels, `cluster-e2e-${id}-${creationId}`]);
};

beforeEach(async () => {
  await Promise.all(
    ids().map(async (id) => ((await containers().things(id)).length === 0 ? make(id) : "")),
  );
});

const destroy = (...words: readonly string[]) =>
  containers().run(["destroy", ...words], { environment: state.environment! });

const left = async (): Promise<number> =>
  (await Promise.all(ids().map(containers().things))).flat().length;

/** On a terminal, where `typed` is typed as soon as something is asked. */
async function destroyOnTerminal(
  typed: string,
): Promise<{ readonly status: number | null; readonly shown: string }> {
  const shown: string[] = [];
  const asked = { already: false };
  const { promise: allShown, resolve } = Promise.withResolvers<void>();
  const child = Bun.spawn([executablePath("cluster-container"), "destroy", "--all"], {
    env: { ...state.environment, XDG_STATE_HOME: containers().folder, TERM: "xterm" },
    terminal: {
      cols: 200,
      rows: 24,
      data: (terminal, bytes) => {
        shown.push(Buffer.from(bytes).toString());
        if (asked.already || !shown.join("").includes("[y/N]")) return;
        asked.already = true;
        terminal.write(typed);
      },
      exit: () => resolve(),
    },
  });
  await Promise.all([child.exited, allShown]);
  return { status: child.exitCode, shown: shown.join("") };
}

test("one cluster goes, the others stay", async () => {
  expect(await destroy("-c", ids()[0]!)).toMatchObject({ status: 0, stdout: `${ids()[0]}\n` });
  expect(await containers().things(ids()[0]!)).toEqual([]);
  expect(await containers().things(ids()[1]!)).toHaveLength(1);
});

test("a cluster that isn't there is said", async () => {
  const ran = await destroy("-c", containers().id("none"));
  expect(ran).toMatchObject({ status: 3, stdout: "" });
  expect(ran.stderr).toContain("[cluster-not-found]");
});

test("where nobody can be asked, --all needs --yes", async () => {
  const ran = await destroy("--all");
  expect(ran).toMatchObject({ status: 2, stdout: "" });
  expect(ran.stderr).toContain("--yes is required");
  const both = await destroy("--all", "--yes", "-c", ids()[0]!);
  expect(both.status).toBe(2);
  expect(both.stderr).toContain("--all and --cluster-id: ");
  expect(await left()).toBe(2);
});

test.each(["n\n", "\n", "maybe\n", "\u0004"])(
  "on a terminal, anything but yes removes nothing: %j",
  async (typed) => {
    const ended = await destroyOnTerminal(typed);
    expect(ended.status).toBe(1);
    expect(ended.shown).toContain(`Remove 2 clusters: ${ids().join(", ")}? [y/N]`);
    expect(ended.shown).toContain("Nothing was removed.");
    expect(await left()).toBe(2);
  },
);

/** Before anything is removed in earnest: without it, a fault in this file could cost somebody a cluster. */
async function assertAlone(): Promise<void> {
  const { stdout } = await containers().run(["list", "--quiet"], {
    environment: state.environment!,
  });
  expect(stdout.trim().split("\n").toSorted()).toEqual([...ids()]);
}

test("on a terminal, yes removes all", async () => {
  await assertAlone();
  const ended = await destroyOnTerminal("y\n");
  expect(ended.status).toBe(0);
  expect(await left()).toBe(0);
});

test("--all --yes asks nobody, and tells as JSON what is gone", async () => {
  await assertAlone();
  const ran = await destroy("--all", "--yes", "--output", "json");
  expect(ran.status).toBe(0);
  expect(JSON.parse(ran.stdout)).toEqual({ schemaVersion: 1, destroyed: [...ids()] });
  expect(await left()).toBe(0);
  const none = await destroy("--all", "--yes");
  expect(none).toMatchObject({ status: 0, stdout: "" });
  expect(none.stderr).toContain("No clusters.");
});

test("a cluster of which labels tell no more than its ids can be listed and destroyed, with its containers", async () => {
  const id = containers().id("least");
  await make(id);
  const network = `cluster-e2e-${id}-${creationId}`;
  const values = { "cluster-id": id, "creation-id": creationId, role: "master", index: "0" };
  const labels = Object.entries(values).map(
    ([name, value]) => `--label=cluster-e2e.${name}=${value}`,
  );
  await docker([
    "create",
    ...labels,
    `--network=${network}`,
    `--name=cluster-e2e-${id}-master_0`,
    nodeImage,
  ]);
  expect((await containers().run(["list"])).stdout).toMatch(
    new RegExp(`^${id} +starting +oss +1 +0 +0`, "m"),
  );
  expect((await containers().run(["destroy", "-c", id])).status).toBe(0);
  expect(await containers().things(id)).toEqual([]);
});

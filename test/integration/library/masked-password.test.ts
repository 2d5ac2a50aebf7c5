import { expect, test } from "bun:test";
import { type Backend, Cluster } from "../../../src/index.ts";
import { libraryRuntime } from "../../../src/library/runtime.ts";
import type { ClusterRecord, NodeRecord } from "../../../src/model/cluster-record.ts";
import { outside } from "../../../src/outside-text.ts";
import { failureOf } from "../../support/failure-of.ts";
import { exampleCluster, exampleTraits } from "../../support/install-example.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

const master = {
  id: "i-0",
  role: "master",
  index: 0,
  state: "running",
  ssh: { host: "127.0.0.1", port: 1, user: "root" },
} as NodeRecord;

test("from the wait on, the superuser's password is masked in everything that the library reports", async () => {
  await using folder = await scratchFolder();
  const lines: string[] = [];
  const environment = { XDG_STATE_HOME: folder.path };
  const runtime = libraryRuntime({ environment, onProgress: (line) => void lines.push(line) }, {});
  const cluster: ClusterRecord = {
    ...exampleCluster([master], "enterprise"),
    directory: folder.path,
  };
  const state = { isThere: true };
  // It repeats its arguments, as a foreign program may.
  const find = async (): Promise<ClusterRecord | undefined> => {
    runtime.progress.note(`the password may be ${outside("hush7777")}`);
    return state.isThere ? cluster : undefined;
  };
  const backend = {
    name: "container",
    nodes: exampleTraits,
    find,
  } as unknown as Backend<undefined>;
  const settings = () => ({ runtime, options: undefined });
  const clusters = { distribution: "debian-12", settings, open: async () => backend };
  const found = await Cluster.find(clusters, "example");
  state.isThere = false;
  const waiting = found.waitForClusterEnterprise({
    superuserPassword: "hush7777",
    timeoutMs: 1000,
  });
  expect((await failureOf(waiting)).id).toBe("cluster-not-found");
  expect(lines).toEqual(["the password may be hush7777", "the password may be ***"]);
});

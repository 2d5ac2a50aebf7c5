import { expect, test } from "bun:test";
import { statfs } from "node:fs/promises";
import type { ContainerFacts } from "../../../../../src/backend/container/checks/facts.ts";
import { hostChecks } from "../../../../../src/backend/container/checks/host.ts";
import type { EngineFacts } from "../../../../../src/backend/container/engine/engine-kind.ts";
import { engineKinds } from "../../../../../src/backend/container/engine/engine-kinds.ts";
import { ClusterError } from "../../../../../src/errors.ts";
import type { Outcome } from "../../../../../src/model/check.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

interface Machine {
  readonly told?: Partial<EngineFacts>;
  readonly reach?: "direct" | "published";
  readonly platform?: NodeJS.Platform;
}

/** What the check of this name says about an engine on such a machine. */
async function judged(name: string, { told = {}, reach = "direct", platform = "linux" }: Machine): Promise<Outcome> {
  const facts = {
    engine: async () => ({ kind: engineKinds.docker }),
    told: async () => told,
    reach: async () => reach,
  } as unknown as ContainerFacts;
  const check = hostChecks(facts, platform).find((each) => each.name === name)!;
  return check.run(new AbortController().signal);
}

test.each([
  ["overlay2", "pass"],
  ["btrfs", "pass"],
  ["vfs", "warn"],
  ["devicemapper", "warn"],
  ["aufs", "warn"],
])("the storage driver %s: %s", async (storageDriver, status) => {
  const outcome = await judged("storage driver", { told: { storageDriver } });
  expect(outcome.status).toBe(status as Outcome["status"]);
  expect(outcome.message).toContain(storageDriver);
});

test.each([
  [2e9, "pass", "2.0 GB"],
  [1.9e9, "warn", "1.9 GB"],
])("memory of %d bytes: %s", async (memoryBytes, status, shown) => {
  const outcome = await judged("memory", { told: { memoryBytes } });
  expect(outcome.status).toBe(status as Outcome["status"]);
  expect(outcome.message).toContain(shown);
});

test("the space is that of the engine's folder, and is not judged where that is on another machine", async () => {
  await using folder = await scratchFolder();
  const { bavail, bsize } = await statfs(folder.path);
  const outcome = await judged("image space", { told: { rootFolder: folder.path } });
  expect(outcome.status).toBe(bavail * bsize >= 5e9 ? "pass" : "fail");
  const [, shown = ""] = / has ([\d.]+) GB free/.exec(outcome.message) ?? [];
  // Others write to this disk meanwhile.
  expect(Math.abs(Number(shown) - (bavail * bsize) / 1e9)).toBeLessThan(2);
  expect(await judged("image space", { told: { rootFolder: "/no/such" } })).toMatchObject({ status: "skip" });
});

test.each([
  ["direct", "own addresses"],
  ["published", "127.0.0.1"],
] as const)("nodes are reached in one of two ways: %s", async (reach, words) => {
  expect((await judged("node addresses", { reach })).message).toContain(words);
});

test("control groups of version 2, and those of a virtual machine, need nothing here", async () => {
  expect(await judged("cgroups", { told: { cgroupVersion: "2" } })).toMatchObject({ status: "pass" });
  expect(await judged("cgroups", { told: { cgroupVersion: "1" }, reach: "published" })).toMatchObject({
    status: "pass",
  });
});

test("inotify is looked at on Linux only", async () => {
  expect(await judged("inotify", { platform: "darwin" })).toMatchObject({ status: "skip" });
  const limit = Number(await Bun.file("/proc/sys/fs/inotify/max_user_instances").text());
  expect((await judged("inotify", {})).status).toBe(limit >= 256 ? "pass" : "warn");
});

test("without an engine all of them are skipped", async () => {
  const missing = () => Promise.reject(new ClusterError("machine-not-set-up", "no engine"));
  const facts = { engine: missing, told: missing, reach: missing } as unknown as ContainerFacts;
  const outcomes = await Promise.all(
    hostChecks(facts, "linux").map((check) => check.run(new AbortController().signal)),
  );
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(["skip"]));
});

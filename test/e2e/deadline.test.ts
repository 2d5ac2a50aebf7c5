/** A machine terminates itself at its deadline, without the program. */
import { expect, test } from "bun:test";
import { buildArtifact } from "./support/artifacts.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const twoHoursMs = 2 * 60 * 60 * 1000;
const untilDeadlineMs = 60_000;

// Shows R39.
test("machines power off at the deadline that the cloud's clock set, and are terminated", async () => {
  await using cloud = await startTestCloud("container");
  const artifact = await buildArtifact("oss", cloud.folder);
  // By the cloud's clock the launch was almost two hours ago, so that the machines' real clocks reach the deadline in a
  // minute.
  await cloud.control("clock", { skewMs: untilDeadlineMs - twoHoursMs });
  const words = [
    "create",
    "--variant",
    "oss",
    "--linux-distribution",
    "debian-12",
    "--agents",
    "0",
    "--public-agents",
    "0",
    artifact,
  ];
  const created = await cloud.run(words);
  expect(created).toMatchObject({ status: 0, stdout: "default\n" });
  expect(await cloud.machines()).toHaveLength(1);
  const limit = Date.now() + untilDeadlineMs + 60_000;
  while ((await cloud.machines()).length > 0 && Date.now() < limit) await Bun.sleep(500);
  expect(await cloud.machines()).toEqual([]);
  expect(await cloud.run(["inspect"])).toMatchObject({ status: 3 });
});

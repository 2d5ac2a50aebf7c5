/** A machine terminates itself at its deadline, without the program. */
import { expect, test } from "bun:test";
import { longEnough } from "../support/long-enough.ts";
import { until } from "../support/until.ts";
import { buildArtifact } from "./support/artifacts.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const twoHoursMs = 2 * 60 * 60 * 1000;

// Shows R39.
test("machines power off at the deadline that the cloud's clock set, and are terminated", async () => {
  await using cloud = await startTestCloud("container");
  const artifact = await buildArtifact("oss", cloud.folder);
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
  // By the cloud's clock the launch was almost two hours ago, so that the machines' real clocks reach the deadline in a
  // minute, or in what this computer needs for the creation.
  await longEnough(60_000, async (untilDeadlineMs) => {
    await cloud.control("clock", { skewMs: untilDeadlineMs - twoHoursMs });
    return (await cloud.run(words)).status === 0;
  });
  await until("the machines have ended", async () => (await cloud.machines()).length === 0, {
    limitMs: 600_000,
    everyMs: 500,
  });
  expect(await cloud.run(["inspect"])).toMatchObject({ status: 3 });
});

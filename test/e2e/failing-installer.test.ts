/** A node whose installer fails ends the wait at once. The error contains the last lines of its log. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { startTestCloud } from "./support/test-cloud.ts";

// Shows R58.
test("wait ends with 1 and shows the failed node's log", async () => {
  await using cloud = await startTestCloud("container");
  const artifact = await buildArtifact("oss", cloud.folder);
  const extra = join(cloud.folder, "extra.yaml");
  await Bun.write(extra, "fault_injection:\n  role: agent\n  message: the disk smells of smoke\n");
  const words = [
    "create",
    "--variant",
    "oss",
    "--linux-distribution",
    "debian-12",
    "--extra-config",
    extra,
    "--public-agents",
    "0",
    artifact,
  ];
  expect(await cloud.run(words)).toMatchObject({ status: 0 });
  const waited = await cloud.run(["wait", "--timeout", "5m"]);
  expect(waited.stderr).toContain("agent_0");
  expect(waited.stderr).toContain("the disk smells of smoke");
  expect(waited.stderr).toContain("[install-failed]");
  expect(waited).toMatchObject({ status: 1, stdout: "" });
});

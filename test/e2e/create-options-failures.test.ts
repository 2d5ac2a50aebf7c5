/** A creation that can't continue ends with the reason, and leaves nothing. */
import { expect, test } from "bun:test";
import { serveArtifact } from "./support/artifact-server.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const { backend: cloud, artifact } = shareBackend(async () => startTestCloud("container"));
const otherSum = "0123456789abcdef".repeat(4);

const createWords = (more: readonly string[]): readonly string[] => [
  ..."create --variant oss --linux-distribution debian-12 --agents 0 --public-agents 0".split(" "),
  ...more,
];

async function expectNothingLeft(): Promise<void> {
  expect(await cloud().machines()).toEqual([]);
  expect(await cloud().control("groups")).toEqual([]);
}

test("a local artifact of another sum is refused before anything is launched", async () => {
  const refused = await cloud().run(createWords(["--artifact-sha256", otherSum, artifact()]));
  expect(refused.stderr).toContain(`not ${otherSum}`);
  expect(refused.stderr).toContain("[artifact-invalid]");
  expect(refused).toMatchObject({ status: 1, stdout: "" });
  const { counts } = (await cloud().control("requests")) as {
    readonly counts: Readonly<Record<string, number>>;
  };
  expect(Object.keys(counts)).not.toContainAnyValues(["RunInstances", "CreateSecurityGroup"]);
});

test("one that a node fetched is refused before it runs there", async () => {
  await using server = await serveArtifact(artifact(), cloud().gatewayAddress);
  const refused = await cloud().run(createWords(["--artifact-sha256", otherSum, server.url]));
  expect(refused.stderr).toContain(`not ${otherSum}`);
  expect(refused.stderr).toContain("[artifact-invalid]");
  expect(refused).toMatchObject({ status: 1, stdout: "" });
  await expectNothingLeft();
});

test("a download that breaks off, wherever it goes, is said to", async () => {
  await using server = await serveArtifact(artifact(), cloud().gatewayAddress, 1_000_000);
  const failed = await cloud().run(createWords(["--artifact-sha256", otherSum, server.url]));
  expect(failed.stderr).toContain(server.url);
  expect(failed.stderr).toContain("the connection was lost");
  expect(failed.stderr).toContain("[artifact-unreachable]");
  expect(failed).toMatchObject({ status: 1, stdout: "" });
  await expectNothingLeft();
});

test("--timeout ends a creation with 4", async () => {
  const { pendingMs } = (await cloud().control("behaviour")) as { readonly pendingMs: number };
  await cloud().control("behaviour", { pendingMs: 600_000 });
  const late = await cloud().run(createWords(["--timeout", "4s", artifact()]));
  await cloud().control("behaviour", { pendingMs });
  expect(late.stderr).toContain("--timeout");
  expect(late.stderr).toContain("[deadline-passed]");
  expect(late).toMatchObject({ status: 4, stdout: "" });
  await expectNothingLeft();
});

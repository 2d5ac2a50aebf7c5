/** The enterprise variant on real machines: license, superuser, TLS, and no secret anywhere it shouldn't be. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const license = "license-0123456789-not-to-be-seen";
const state: { cloud?: TestCloud; artifact?: string } = {};
const cloud = (): TestCloud => state.cloud!;

beforeAll(async () => {
  state.cloud = await startTestCloud("container");
  state.artifact = await buildArtifact("enterprise", state.cloud.folder);
  await Bun.write(join(state.cloud.folder, "license.txt"), `${license}\n`);
}, 300_000);

afterAll(async () => {
  await state.cloud?.[Symbol.asyncDispose]();
}, 120_000);

const createWords = () =>
  `create --variant enterprise --linux-distribution debian-12 --public-agents 0 -vvv ${state.artifact}`.split(" ");

test("without a license the artifact's own words are shown, and nothing is left", async () => {
  const refused = await cloud().run(createWords());
  expect(refused.stderr).toContain("license_key_contents");
  expect(refused.stderr).toContain("[configuration-refused]");
  expect(refused).toMatchObject({ status: 1, stdout: "" });
  expect(await cloud().machines()).toEqual([]);
}, 300_000);

test("with a license from the environment it is created, and the license is printed nowhere", async () => {
  const environment = { CLUSTER_LICENSE_KEY_PATH: join(cloud().folder, "license.txt") };
  const created = await cloud().run([...createWords(), "--security-mode", "strict"], { environment });
  expect(created).toMatchObject({ status: 0, stdout: "default\n" });
  expect(created.stderr).not.toContain(license);
}, 300_000);

test("a wrong superuser password is said, not waited for", async () => {
  const waited = await cloud().run(["wait", "--superuser-password", "-", "--timeout", "5m"], {
    stdin: "wrong-password\n",
  });
  expect(waited.stderr).toContain("[login-refused]");
  expect(waited.stderr).not.toContain("wrong-password");
  expect(waited).toMatchObject({ status: 1, stdout: "" });
}, 400_000);

test("wait checks TLS against the cluster's CA and logs in", async () => {
  expect(await cloud().run(["wait", "--timeout", "5m", "-vv"])).toMatchObject({ status: 0, stdout: "" });
}, 400_000);

test("a job runs, and the web UI speaks https", async () => {
  expect((await cloud().run(["run", "srun", "-N1", "echo", "ran"])).stdout).toBe("ran\n");
  expect((await cloud().inspect("default")).webUi).toStartWith("https://");
  const folder = join(cloud().environment["XDG_STATE_HOME"]!, "cluster-e2e", "cloud", "us-west-2");
  for (const name of await readdir(folder, { recursive: true })) {
    const file = Bun.file(join(folder, name));
    if (await file.exists()) expect(await file.text()).not.toContain(license);
  }
});

/** The enterprise variant on containers, with TLS, a license and the superuser's login; and the library. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { runEnterpriseFlow } from "./support/enterprise-flow.ts";
import { repository } from "./support/executable.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const state: { containers?: TestContainers; artifact?: string; openSource?: string } = {};
const containers = (): TestContainers => state.containers!;

beforeAll(async () => {
  state.containers = await startTestContainers();
  state.artifact = await buildArtifact("enterprise", state.containers.folder);
  state.openSource = await buildArtifact("oss", state.containers.folder);
}, 300_000);

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
}, 120_000);

test("create --wait ends with a platform that has TLS and a login, and destroy with nothing", async () => {
  const id = containers().id("enterprise");
  await runEnterpriseFlow({
    id,
    folder: containers().folder,
    artifact: state.artifact!,
    machineWords: ["--node-image", nodeImage],
    run: (words) => containers().run(words),
  });
  expect((await containers().run(["destroy", "-c", id])).status).toBe(0);
  expect(await containers().things(id)).toEqual([]);
}, 400_000);

test("the library's example runs on containers, and leaves nothing", async () => {
  const id = containers().id("library");
  const example = join(repository, "test", "e2e", "example", "library-container.ts");
  const child = Bun.spawn([process.execPath, example, state.openSource!, nodeImage, id], {
    env: { PATH: process.env["PATH"] ?? "", XDG_STATE_HOME: join(containers().folder, "state") },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, stdout, stderr] = await Promise.all([
    child.exited,
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: "The job ran on agent-0.\n" });
  expect(await containers().things(id)).toEqual([]);
}, 120_000);

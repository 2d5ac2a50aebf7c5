/** The enterprise variant on containers, with TLS, a license and the superuser's login; and the library. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
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
  const license = join(containers().folder, "license.txt");
  await Bun.write(license, "sample-license\n");
  const created = await containers().run([
    ..."create --variant enterprise --security-mode strict --public-agents 0 --wait --timeout 5m".split(" "),
    "--license-key",
    license,
    "--node-image",
    nodeImage,
    "-c",
    id,
    state.artifact!,
  ]);
  expect({ status: created.status, stdout: created.stdout }).toEqual({ status: 0, stdout: `${id}\n` });
  const opened = await containers().run(["web", "-c", id]);
  expect(opened.stdout).toMatch(/^https:\/\//);
  expect(opened.stderr).toContain("certificate authority");
  const ran = await containers().run(["run", "-c", id, "srun", "-N1", "hostname"]);
  expect(ran.stdout).toBe("agent-0\n");
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

/** The enterprise variant on virtual machines, with TLS, a license and the superuser's login. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { buildArtifact } from "./support/artifacts.ts";
import { runEnterpriseFlow } from "./support/enterprise-flow.ts";
import { buildVmImage, startTestVms } from "./support/test-vms.ts";
import type { TestVms } from "./support/test-vms.ts";

const state: { vms?: TestVms; artifact?: string; image?: string } = {};
const vms = (): TestVms => state.vms!;

beforeAll(async () => {
  state.vms = await startTestVms();
  state.artifact = await buildArtifact("enterprise", state.vms.folder);
  state.image = await buildVmImage();
}, 600_000);

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
}, 120_000);

test("create --wait ends with a platform that has TLS and a login, and destroy with nothing", async () => {
  const id = vms().id("enterprise");
  await runEnterpriseFlow({
    id,
    folder: vms().folder,
    artifact: state.artifact!,
    // Jobs on agents are in vm-flow; another machine would take minutes where its processor is translated.
    agents: 0,
    machineArguments: ["--memory", "768", "--cpus", "1", "--disk-size", "4g", "--image", state.image!],
    run: (words) => vms().run(words),
  });
  // A single machine needs no private network.
  expect((await vms().machines(id)).size).toBe(1);
  expect((await vms().run(["destroy", "-c", id])).status).toBe(0);
  expect((await vms().machines(id)).size).toBe(0);
}, 1_800_000);

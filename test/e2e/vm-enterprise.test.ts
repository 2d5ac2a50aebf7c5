/** The enterprise variant on virtual machines, with TLS, a license and the superuser's login. */
import { beforeAll, expect, test } from "bun:test";
import { runEnterpriseFlow } from "./support/enterprise-flow.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { buildVmImage, startTestVms } from "./support/test-vms.ts";

const { backend: vms, artifact } = shareBackend(startTestVms, "enterprise");
const state: { image?: string } = {};

beforeAll(async () => {
  state.image = await buildVmImage();
}, 600_000);

test("create --wait ends with a platform that has TLS and a login, and destroy with nothing", async () => {
  const id = vms().id("enterprise");
  await runEnterpriseFlow({
    id,
    folder: vms().folder,
    artifact: artifact(),
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

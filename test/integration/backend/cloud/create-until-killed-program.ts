/** Creates a cluster in the cloud that the environment names, then stays in the last step of the creation until its parent kills it. */
import { createCloudBackend } from "../../../../src/backend/cloud/cloud-backend.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { createTestCluster, newRequest, region } from "../../../support/cloud-fixture.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

const runtime = { environment: process.env, clock: systemClock, progress: silentProgress };
const backend = await createCloudBackend({ ...runtime, signal: neverAborted }, { region });
const request = newRequest("default", {
  counts: { master: 1, agent: 2, public_agent: 0 },
  complete: () => Bun.sleep(60_000),
});
await createTestCluster({ ...runtime, signal: neverAborted }, backend, request);

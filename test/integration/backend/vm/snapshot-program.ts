/**
 * Creates or restores a snapshot of the cluster in $XDG_STATE_HOME, as a command would, to be killed meanwhile. Usage: bun
 * snapshot-program.ts create|restore CLUSTER_ID NAME
 */
import { createVmBackend } from "../../../../src/backend/vm/vm-backend.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";

const [deed = "", clusterId = "", name = ""] = process.argv.slice(2);
const { signal } = new AbortController();
const backend = createVmBackend({
  environment: process.env,
  clock: systemClock,
  progress: silentProgress,
});
const cluster = await backend.find(clusterId, signal);
if (cluster === undefined) throw new Error(`no cluster ${clusterId}`);
await backend.local.snapshots[deed as "create" | "restore"](cluster, name, signal);

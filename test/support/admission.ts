import type { Backend } from "../../src/backend/contract.ts";
import type { AdmittedRange } from "../../src/backend/admission.ts";
import { findCluster } from "../../src/cluster/find-cluster.ts";
import { publicPorts } from "../../src/platform/layouts/find-layout.ts";
import { neverAborted } from "./never-aborted.ts";

/** Does what the command `admit` does, for the cluster `nightly`. */
export async function admitRange(backend: Backend<unknown>, range?: string): Promise<string> {
  const cluster = await findCluster(backend, "nightly", neverAborted);
  return backend.cloud!.admission.admit(cluster, { range, openPorts: publicPorts }, neverAborted);
}

export const removeRange = async (backend: Backend<unknown>, range: string): Promise<string> =>
  backend.cloud!.admission.remove(
    await findCluster(backend, "nightly", neverAborted),
    range,
    neverAborted,
  );

export const listAdmittedRanges = async (
  backend: Backend<unknown>,
): Promise<readonly AdmittedRange[]> =>
  backend.cloud!.admission.list(await findCluster(backend, "nightly", neverAborted), neverAborted);

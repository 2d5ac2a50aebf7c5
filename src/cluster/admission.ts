import type { Admission, AdmittedRange, Backend } from "../backend/contract.ts";
import { layouts } from "../platform/layouts/find-layout.ts";
import { usedHereOnly } from "./export-cluster.ts";
import { findCluster } from "./find-cluster.ts";

/** Admits an address range, by default this machine's address, to the nodes of a cluster. Returns the range. */
export async function admitRange(
  backend: Backend<unknown>,
  { clusterId, range }: { readonly clusterId: string; readonly range: string | undefined },
  signal: AbortSignal,
): Promise<string> {
  const openPorts = [...new Set(layouts.flatMap((layout) => layout.publicPorts))];
  const admission = admissionOf(backend);
  return admission.admit(await findCluster(backend, clusterId, signal), { range, openPorts }, signal);
}

export async function listAdmittedRanges(
  backend: Backend<unknown>,
  clusterId: string,
  signal: AbortSignal,
): Promise<readonly AdmittedRange[]> {
  const admission = admissionOf(backend);
  return admission.list(await findCluster(backend, clusterId, signal), signal);
}

/** Undoes `admitRange`, or removes a range that the create command admitted. Returns the range. */
export async function removeRange(
  backend: Backend<unknown>,
  { clusterId, range }: { readonly clusterId: string; readonly range: string },
  signal: AbortSignal,
): Promise<string> {
  const admission = admissionOf(backend);
  return admission.remove(await findCluster(backend, clusterId, signal), range, signal);
}

function admissionOf({ name, admission }: Backend<unknown>): Admission {
  if (admission !== undefined) return admission;
  throw usedHereOnly(name);
}

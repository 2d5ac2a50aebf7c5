import { failureCode } from "../../src/backend/cloud/api/api-errors.ts";
import { type CloudApi, describeGroups, describeInstances } from "../../src/backend/cloud/api/api.ts";

const limitMs = 10 * 60_000;
/** What was launched a moment ago may not be found by its tags yet. */
const quietMs = 20_000;
const pauseMs = 2_000;

/**
 * Ends the instances with one of these cluster ids and deletes their groups, by tags alone: it must work when the program that launched
 * them doesn't. Returns the ids of what is left. `isSure`: no request was cut off, so whatever was created can be seen.
 */
export async function removeAll(
  api: CloudApi,
  clusterIds: readonly string[],
  { isSure }: { readonly isSure: boolean },
): Promise<readonly string[]> {
  const { signal } = new AbortController();
  const startedMs = Date.now();
  for (;;) {
    const found = await Promise.all(
      clusterIds.map(async (clusterId) => ({
        instances: await describeInstances(api, { clusterId }, signal),
        groups: await describeGroups(api, { clusterId }, signal),
      })),
    );
    const instances = found.flatMap((each) => each.instances).filter(({ State }) => State?.Name !== "terminated");
    const groups = found.flatMap((each) => each.groups).flatMap(({ GroupId }) => GroupId ?? []);
    const ids = instances.flatMap(({ InstanceId }) => InstanceId ?? []);
    const isQuiet = isSure || Date.now() - startedMs > quietMs;
    if (ids.length + groups.length === 0 && isQuiet) return [];
    if (Date.now() - startedMs > limitMs) return [...ids, ...groups];
    const ending = instances.filter(({ State }) => State?.Name === "shutting-down");
    if (ids.length > ending.length) await api.call("TerminateInstances", { InstanceIds: ids }, signal);
    if (ids.length === 0) await Promise.all(groups.map(async (GroupId) => deleteGroup(api, GroupId, signal)));
    await Bun.sleep(pauseMs);
  }
}

/** Instances use a group for a while after they have ended. */
async function deleteGroup(api: CloudApi, GroupId: string, signal: AbortSignal): Promise<void> {
  try {
    await api.call("DeleteSecurityGroup", { GroupId }, signal);
  } catch (error) {
    if (failureCode(error) === undefined) throw error;
  }
}

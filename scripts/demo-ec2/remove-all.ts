import { dirname, join } from "node:path";
import { failureCode } from "../../src/backend/cloud/api/api-errors.ts";
import {
  type CloudApi,
  describeGroups,
  describeInstances,
} from "../../src/backend/cloud/api/api.ts";
import { readLaunches } from "../../src/backend/cloud/launch/saved-requests.ts";

const limitMs = 10 * 60_000;
/** What was launched a moment ago may not be found yet. */
const quietMs = 20_000;
const pauseMs = 2_000;

/** What a run has requested itself. Tags and names are no proof: anyone who may tag in the account can copy them. */
export interface Requested {
  /** The tokens of its launches, noted before each request. Nobody can give an instance the token of another launch. */
  readonly clientTokens: Set<string>;
  readonly groupIds: Set<string>;
}

/** Reads what `cluster-cloud` has noted in its state folder. Throws if a note can't be read. */
export async function readRequested(stateFolder: string): Promise<Requested> {
  const requested: Requested = { clientTokens: new Set(), groupIds: new Set() };
  const files = await Array.fromAsync(
    new Bun.Glob("**/launches/*.json").scan({ cwd: stateFolder, dot: true }),
  );
  for (const directory of new Set(files.map((file) => dirname(dirname(join(stateFolder, file)))))) {
    const { launches, unreadable } = await readLaunches(directory);
    if (unreadable.length > 0)
      throw new Error(`the launches ${unreadable.join(", ")} in ${directory} cannot be read`);
    for (const { request } of launches) {
      requested.clientTokens.add(request.ClientToken ?? "");
      for (const id of request.NetworkInterfaces?.[0]?.Groups ?? []) requested.groupIds.add(id);
    }
  }
  return requested;
}

/**
 * Ends the instances and deletes the groups that a run has requested. Returns the ids of what is left. `isSure`: no request was cut
 * off, so whatever was created can be seen.
 */
export async function removeAll(
  api: CloudApi,
  { clientTokens, groupIds }: Requested,
  { isSure }: { readonly isSure: boolean },
): Promise<readonly string[]> {
  const { signal } = new AbortController();
  const startedMs = Date.now();
  const groups = new Set(groupIds);
  for (;;) {
    const instances = (await launchedBy(api, clientTokens, signal)).filter(
      ({ State }) => State?.Name !== "terminated",
    );
    const ids = instances.flatMap(({ InstanceId }) => InstanceId ?? []);
    const isQuiet = isSure || Date.now() - startedMs > quietMs;
    if (ids.length + groups.size === 0 && isQuiet) return [];
    if (Date.now() - startedMs > limitMs) return [...ids, ...groups];
    const ending = instances.filter(({ State }) => State?.Name === "shutting-down");
    if (ids.length > ending.length)
      await api.call("TerminateInstances", { InstanceIds: ids }, signal);
    if (ids.length === 0)
      for (const id of groups) if (await deleteGroup(api, id, signal)) groups.delete(id);
    if (ids.length + groups.size > 0 || !isQuiet) await Bun.sleep(pauseMs);
  }
}

const launchedBy = async (
  api: CloudApi,
  clientTokens: ReadonlySet<string>,
  signal: AbortSignal,
) => {
  const found = [...clientTokens].map(async (clientToken) => {
    const instances = await describeInstances(api, { clientToken }, signal);
    return instances.filter((instance) => instance.ClientToken === clientToken);
  });
  return (await Promise.all(found)).flat();
};

/** Returns the ids of what has the tags of a run, although the run hasn't requested it. It is for people to judge. */
export async function foundByTags(
  api: CloudApi,
  clusterIds: readonly string[],
): Promise<readonly string[]> {
  const { signal } = new AbortController();
  const found = await Promise.all(
    clusterIds.map(async (clusterId) => {
      const instances = await describeInstances(api, { clusterId }, signal);
      const living = instances.filter(({ State }) => State?.Name !== "terminated");
      const groups = await describeGroups(api, { clusterId }, signal);
      return [
        ...living.map(({ InstanceId }) => InstanceId),
        ...groups.map(({ GroupId }) => GroupId),
      ];
    }),
  );
  return found
    .flat()
    .flatMap((id) =>
      id === undefined ? [] : [`${id}, which has our tags but was not requested here`],
    );
}

/** Resolves with whether the group is gone. Instances use it for a while after they have ended. */
async function deleteGroup(api: CloudApi, GroupId: string, signal: AbortSignal): Promise<boolean> {
  try {
    await api.call("DeleteSecurityGroup", { GroupId }, signal);
    return true;
  } catch (error) {
    const code = failureCode(error);
    if (code === undefined) throw error;
    return code === "InvalidGroup.NotFound";
  }
}

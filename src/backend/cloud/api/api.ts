import type { Filter, Instance, SecurityGroup } from "@aws-sdk/client-ec2";
import { ClusterError } from "../../../errors.ts";
import { retry } from "../../../system/retry.ts";
import type { Clock } from "../../../system/runtime.ts";
import { ruleOf, waits } from "../../../system/waits.ts";
import { tagNames } from "../tags.ts";
import { isFailure } from "./api-errors.ts";
import type { FailureMeaning } from "./failure-advice.ts";
import type { commands } from "./commands.ts";

/** The cloud's API in one region, with one set of credentials. */
export interface CloudApi {
  readonly region: string;
  readonly credentialSource: string;
  /** When the credentials expire; absent if they don't, or if that is unknown. */
  readonly credentialsExpireAt?: Date | undefined;
  /**
   * Sends one request, and retries transient faults and throttling a limited number of times. Throws a ClusterError
   * (failureCode() returns its code), or the signal's reason as soon as it is aborted. After an abort, nobody knows
   * whether the request was carried out.
   */
  call<Name extends Action>(
    action: Name,
    input: Calls[Name]["input"],
    signal: AbortSignal,
  ): Promise<Calls[Name]["output"]>;
  /** The milliseconds since 1970 by the API's clock, because this machine's clock may be wrong. */
  now(): number;
}

type Commands = typeof commands;

export type Calls = { readonly [Name in Action]: Call<Commands[Name]> };

export type Action = keyof Commands;

type Call<Command> = Command extends new (...args: never) => {
  readonly input: infer Input;
  resolveMiddleware(...args: never): (...args: never) => Promise<{ readonly output: infer Output }>;
}
  ? { readonly input: Input; readonly output: Output }
  : never;

export type Selection = "all" | { readonly clusterId: string } | { readonly creationId: string };

/** The number of filter values that one request accepts. */
const mostIds = 200;

export function chunksOf<Item>(items: readonly Item[], size: number) {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, index) =>
    items.slice(index * size, (index + 1) * size),
  );
}

/**
 * Requests page after page. The result includes terminated machines as long as the cloud remembers
 * them, about an hour.
 */
export async function describeInstances(
  api: CloudApi,
  selection: Selection | { readonly ids: readonly string[] } | { readonly clientToken: string },
  signal: AbortSignal,
): Promise<readonly Instance[]> {
  if (typeof selection === "object" && "ids" in selection && selection.ids.length > mostIds) {
    const parts = chunksOf(selection.ids, mostIds).map(async (ids) =>
      describeInstances(api, { ids }, signal),
    );
    return (await Promise.all(parts)).flat();
  }
  const query = { Filters: [filterFor(selection)], MaxResults: 1000 };
  const found = await collectPages(
    api,
    ["DescribeInstances", query],
    ({ Reservations }) => Reservations,
    signal,
  );
  return found.flatMap(({ Instances = [] }) => Instances);
}

/** Requests page after page. */
export async function describeGroups(
  api: CloudApi,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly SecurityGroup[]> {
  const query = { Filters: [filterFor(selection)], MaxResults: 1000 };
  return await collectPages(
    api,
    ["DescribeSecurityGroups", query],
    ({ SecurityGroups }) => SecurityGroups,
    signal,
  );
}

function filterFor(selection: Parameters<typeof describeInstances>[1]): Filter {
  if (selection === "all") return { Name: "tag-key", Values: [tagNames.clusterId] };
  if ("ids" in selection) return { Name: "instance-id", Values: [...selection.ids] };
  if ("clientToken" in selection) return { Name: "client-token", Values: [selection.clientToken] };
  if ("clusterId" in selection)
    return { Name: `tag:${tagNames.clusterId}`, Values: [selection.clusterId] };
  return { Name: `tag:${tagNames.creationId}`, Values: [selection.creationId] };
}

/** A hundred thousand instances. */
const mostPages = 100;

/** Requests page after page and collects their items. Throws `cloud-failed` if there is no end of pages. */
export async function collectPages<Name extends Action, Item>(
  api: CloudApi,
  [action, query]: readonly [action: Name, query: Calls[Name]["input"]],
  itemsOf: (page: Calls[Name]["output"]) => readonly Item[] | undefined,
  signal: AbortSignal,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let position: { readonly NextToken?: string } = {};
  for (let pages = 0; pages < mostPages; pages += 1) {
    const page = await api.call(action, { ...query, ...position }, signal);
    for (const item of itemsOf(page) ?? []) items.push(item);
    const { NextToken = "" } = page as { readonly NextToken?: string };
    if (NextToken === "") return items;
    position = { NextToken };
  }
  throw new ClusterError("cloud-failed", `The API's answer has more than ${mostPages} pages.`, {
    hint: "Check what answers at the API's address (AWS_ENDPOINT_URL_EC2, HTTPS_PROXY).",
  });
}

/** Retries while the API doesn't know a thing that was created a moment ago. */
export async function untilVisible<Result>(
  task: (signal: AbortSignal) => Promise<Result>,
  missing: FailureMeaning,
  clock: Clock,
  signal: AbortSignal,
): Promise<Result> {
  const tolerates = (error: ClusterError): boolean => isFailure(error, missing);
  return await retry(task, { ...ruleOf(waits.visibility, clock), tolerates }, signal);
}

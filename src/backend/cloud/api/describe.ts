import type { Filter, Instance, SecurityGroup } from "@aws-sdk/client-ec2";
import type { CloudApi } from "./api.ts";
import { collectPages } from "./pages.ts";
import { tagNames } from "../records/tags.ts";

/** Selects everything of ours, or the things of one cluster id or of one creation. */
export type Selection = "all" | { readonly clusterId: string } | { readonly creationId: string };

/** The number of filter values that one request accepts. */
const mostIds = 200;

/** Sends one request, page by page. The result includes terminated machines for as long as the cloud remembers them (about an hour). */
export async function describeInstances(
  api: CloudApi,
  selection: Selection | { readonly ids: readonly string[] } | { readonly clientToken: string },
  signal: AbortSignal,
): Promise<readonly Instance[]> {
  return await collectPages(async (position) => {
    const request = { Filters: [filterFor(selection)], MaxResults: 1000, ...position };
    const page = await api.call("DescribeInstances", request, signal);
    return { items: page.Reservations?.flatMap((reservation) => reservation.Instances ?? []), next: page.NextToken };
  });
}

/** Sends one request, page by page. */
export async function describeGroups(
  api: CloudApi,
  selection: Selection,
  signal: AbortSignal,
): Promise<readonly SecurityGroup[]> {
  return await collectPages(async (position) => {
    const request = { Filters: [filterFor(selection)], MaxResults: 1000, ...position };
    const page = await api.call("DescribeSecurityGroups", request, signal);
    return { items: page.SecurityGroups, next: page.NextToken };
  });
}

function filterFor(selection: Parameters<typeof describeInstances>[1]): Filter {
  if (selection === "all") return { Name: "tag-key", Values: [tagNames.clusterId] };
  if ("ids" in selection) return { Name: "instance-id", Values: selection.ids.slice(0, mostIds) };
  if ("clientToken" in selection) return { Name: "client-token", Values: [selection.clientToken] };
  if ("clusterId" in selection) return { Name: `tag:${tagNames.clusterId}`, Values: [selection.clusterId] };
  return { Name: `tag:${tagNames.creationId}`, Values: [selection.creationId] };
}

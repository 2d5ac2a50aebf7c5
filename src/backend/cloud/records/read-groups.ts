import type { SecurityGroup } from "@aws-sdk/client-ec2";
import { parseClusterId, parseCreationId, parseMoment } from "../../../model/parse-values.ts";
import { groupName, readTags, tagNames } from "./tags.ts";
import { complete, shownId, type ForeignResource } from "../../foreign-resource.ts";

/** A cluster's security group. */
export interface Group {
  readonly id: string;
  readonly clusterId: string;
  readonly creationId: string;
  readonly expiresAt: Date | undefined;
  readonly rules: NonNullable<SecurityGroup["IpPermissions"]>;
}

export interface GroupReading {
  readonly groups: readonly Group[];
  readonly foreignResources: readonly ForeignResource[];
}

/**
 * Reads the API's descriptions of security groups with our tags. A group's name can't be changed, so a group belongs to a cluster only if it has that
 * cluster's name.
 */
export function readGroups(described: readonly SecurityGroup[]): GroupReading {
  const groups: Group[] = [];
  const foreignResources: ForeignResource[] = [];
  for (const each of described) {
    const group = readGroup(each);
    if (typeof group === "string")
      foreignResources.push({ what: `security group ${shownId(each.GroupId)}`, why: group });
    else groups.push(group);
  }
  return { groups, foreignResources };
}

/** Returns a group, or what is wrong with it. */
function readGroup(group: SecurityGroup): Group | string {
  const tags = readTags(group.Tags);
  const required = { clusterId: parseClusterId(tags.clusterId), creationId: parseCreationId(tags.creationId) };
  const expiresAt = parseMoment(tags.expiresAt);
  const known = complete({ kind: "tag", names: tagNames, texts: tags }, required, { expiresAt });
  if (typeof known === "string") return known;
  const id = group.GroupId ?? "";
  if (!/^sg-[0-9a-f]{8,17}$/.test(id)) return "its id is malformed";
  if (group.GroupName !== groupName(known.clusterId)) return "its name is not the name of its cluster's group";
  return { id, ...known, expiresAt, rules: group.IpPermissions ?? [] };
}

import type { SecurityGroup } from "@aws-sdk/client-ec2";
import { parseClusterId, parseCreationId, parseMoment } from "../../../model/parse-values.ts";
import { groupName } from "./group-name.ts";
import { complete, shownId, type Stranger } from "../../stranger.ts";
import { readTags, tagNames } from "./tags.ts";

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
  readonly strangers: readonly Stranger[];
}

/**
 * Reads the API's descriptions of security groups with our tags. A group's name can't be changed, so a group belongs to a cluster only if it has that
 * cluster's name.
 */
export function readGroups(described: readonly SecurityGroup[]): GroupReading {
  const groups: Group[] = [];
  const strangers: Stranger[] = [];
  for (const each of described) {
    const group = readGroup(each);
    if (typeof group === "string") strangers.push({ what: `security group ${shownId(each.GroupId)}`, why: group });
    else groups.push(group);
  }
  return { groups, strangers };
}

/** Returns a group, or what is wrong with it. */
function readGroup(group: SecurityGroup): Group | string {
  const tags = readTags(group.Tags);
  const required = { clusterId: parseClusterId(tags.clusterId), creationId: parseCreationId(tags.creationId) };
  const expiresAt = parseMoment(tags.expiresAt);
  const known = complete({ kind: "tag", names: tagNames, texts: tags }, required, { expiresAt });
  if (typeof known === "string") return known;
  const id = group.GroupId ?? "";
  if (!/^sg-[0-9a-f]{8,17}$/.test(id)) return "its id has an unknown form";
  if (group.GroupName !== groupName(known.clusterId)) return "its name is not that of its cluster's group";
  return { id, ...known, expiresAt, rules: group.IpPermissions ?? [] };
}

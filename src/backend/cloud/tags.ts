import * as read from "../../model/reader.ts";
/** The names of our tags. Commands read everything that they need to know about a cluster from these tags. */
export const tagNames = {
  clusterId: "cluster-e2e:cluster-id",
  creationId: "cluster-e2e:creation-id",
  role: "cluster-e2e:role",
  /** The index of the first machine of a launch: the launch index plus this is the node's index within its role. */
  indexBase: "cluster-e2e:index-base",
  /** The requested number of nodes of each role, such as `master=1 agent=2 public_agent=1`. */
  counts: "cluster-e2e:counts",
  variant: "cluster-e2e:variant",
  /** Such as `http`, `https:8443/ui` or `none`, if the creation knew it. */
  webUi: "cluster-e2e:web-ui",
  /** Such as `slurm 80,6817 24.05`, if the creation knew it and it has no variants. */
  platform: "cluster-e2e:platform",
  distribution: "cluster-e2e:distribution",
  sshUser: "cluster-e2e:ssh-user",
  /** RFC 3339. */
  expiresAt: "cluster-e2e:expires-at",
  createdBy: "cluster-e2e:created-by",
} as const;

export type TagValues = Readonly<Partial<Record<keyof typeof tagNames, string>>>;

/** Returns tags in the API's form. The provider's console shows `Name`. */
export function toTags(name: string, values: TagValues, custom: readonly CustomTag[]): Tag[] {
  const own = Object.entries(values).map(([key, value]) => ({
    Key: tagNames[key as keyof TagValues],
    Value: value,
  }));
  const hasOwnName = custom.some((tag) => tag.key === "Name");
  return [
    ...(hasOwnName ? [] : [{ Key: "Name", Value: name }]),
    ...own,
    ...custom.map((tag) => ({ Key: tag.key, Value: tag.value })),
  ];
}

/** Returns our own tags, keyed by the names used here. Anyone may have changed them; a missing tag is undefined. */
export function readTags(tags: readonly Tag[] | undefined): TagValues {
  const values = new Map((tags ?? []).map((tag) => [tag.Key, tag.Value]));
  return Object.fromEntries(Object.entries(tagNames).map(([key, name]) => [key, values.get(name)]));
}

/** Returns the name of a cluster's security group. It is unique in a network, so two creations can't use one id. */
export function groupName(clusterId: string): string {
  return `cluster-e2e-${clusterId}`;
}

/** A tag in the API's form. The SDK's own type would lead the library's types to the SDK. */
interface Tag {
  Key?: string | undefined;
  Value?: string | undefined;
}

/** A tag that the user adds. */
export interface CustomTag {
  readonly key: string;
  readonly value: string;
}

/** `i-0123456789abcdef0`, or the shorter form of old accounts. */
export const parseInstanceId = read.matching(/^i-[0-9a-f]{8,17}$/);

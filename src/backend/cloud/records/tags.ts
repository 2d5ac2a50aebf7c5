import type { Tag } from "@aws-sdk/client-ec2";
import type { CustomTag } from "../cloud-options.ts";

/** The names of our tags, in one place. Everything that a command must know of a cluster is read back from them. */
export const tagNames = {
  clusterId: "cluster-e2e:cluster-id",
  creationId: "cluster-e2e:creation-id",
  role: "cluster-e2e:role",
  /** Added to the launch index: the node's index within its role. */
  indexBase: "cluster-e2e:index-base",
  /** How many nodes of each role were asked for, such as `master=1 agent=2 public_agent=1`. */
  counts: "cluster-e2e:counts",
  variant: "cluster-e2e:variant",
  /** `http` or `https`, where the creation knew. */
  webScheme: "cluster-e2e:web-scheme",
  distribution: "cluster-e2e:distribution",
  sshUser: "cluster-e2e:ssh-user",
  /** RFC 3339. */
  expiresAt: "cluster-e2e:expires-at",
  createdBy: "cluster-e2e:created-by",
} as const;

export type TagValues = Readonly<Partial<Record<keyof typeof tagNames, string>>>;

/** The API's form of tags. `Name` is what the maker's console shows. */
export function toTags(name: string, values: TagValues, custom: readonly CustomTag[]): Tag[] {
  const own = Object.entries(values).map(([key, value]) => ({ Key: tagNames[key as keyof TagValues], Value: value }));
  const hasOwnName = custom.some((tag) => tag.key === "Name");
  return [
    ...(hasOwnName ? [] : [{ Key: "Name", Value: name }]),
    ...own,
    ...custom.map((tag) => ({ Key: tag.key, Value: tag.value })),
  ];
}

/** Our own tags by the names that they have here, as anybody may have changed them; what is missing is undefined. */
export function readTags(tags: readonly Tag[] | undefined): TagValues {
  const values = new Map((tags ?? []).map((tag) => [tag.Key, tag.Value]));
  return Object.fromEntries(Object.entries(tagNames).map(([key, name]) => [key, values.get(name)]));
}

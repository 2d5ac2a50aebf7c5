import { cidrProblem } from "./admin-cidrs.ts";
import type { CloudValues, CustomTag } from "./options.ts";
import { tagNames } from "./tags.ts";

/**
 * Finds problems with combinations of values and with address ranges. It is a file of its own because the code that reads ranges takes longer to load
 * than the rest of a start.
 */
export function cloudProblems(values: Partial<CloudValues>): readonly string[] {
  const { adminCidrs = [], customTags = [], image, sshUser } = values;
  const ranges = adminCidrs.flatMap((range) => cidrProblem(range) ?? []);
  const tags = customTags.flatMap(({ key, value }, index) => tagProblem(key, value, customTags.slice(0, index)) ?? []);
  const isHalf = (image === undefined) !== (sshUser === undefined);
  return [
    ...ranges.map((problem) => `\`adminCidrs\`: ${problem}`),
    ...tags.map((problem) => `\`customTags\`: ${problem}`),
    ...(isHalf ? ["`image` and `sshUser`: pass both or neither"] : []),
  ];
}

/** EC2 allows 50 tags per resource. Some of them are ours, and `Name` is added to every resource. */
const limit = 50 - Object.keys(tagNames).length - 1;
const reserved = ["aws:", "cluster-e2e:"] as const;

/**
 * Returns what is wrong with one more custom tag beside `others`, or `undefined`. Source:
 * https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
 */
export function tagProblem(key: string, value: string, others: readonly CustomTag[]): string | undefined {
  // A key ends at the first colon, so this looks for a reserved prefix in the whole text.
  const prefix = reserved.find((candidate) => `${key}:${value}`.toLowerCase().startsWith(candidate));
  if (key === "") return "a tag needs a key: <TAG_KEY>:<TAG_VALUE>";
  if (prefix !== undefined) return `tag "${key}:${value}" begins with the reserved "${prefix}"`;
  if (characters(key) > 128) return `tag key "${shortened(key)}" is longer than 128 characters`;
  if (characters(value) > 256) return `the value of tag "${key}" is longer than 256 characters`;
  if (hasControlCharacter(key + value)) return `tag "${key}" contains a control character`;
  if (others.some((tag) => tag.key === key)) return `tag "${key}" is set twice`;
  if (others.length >= limit) return `more than ${limit} custom tags`;
  return undefined;
}

const characters = (text: string): number => Array.from(text).length;
const shortened = (text: string): string => `${text.slice(0, 20)}…`;
const hasControlCharacter = (text: string): boolean => /\p{Cc}/u.test(text);

import { cidrProblem } from "./launch/admin-cidrs.ts";
import type { CloudValues } from "./cloud-schema.ts";
import { tagProblem } from "./launch/tag-problem.ts";

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
    ...(isHalf ? ["`image` and `sshUser`: give both or neither"] : []),
  ];
}

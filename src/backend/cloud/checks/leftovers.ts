import { type Check, type Outcome, pass, warn } from "../../../model/check.ts";
import { withForeignResources } from "../../with-foreign-resources.ts";
import type { Group } from "../records/read-groups.ts";
import type { Machine } from "../records/read-machines.ts";
import { findLeftovers } from "../removal/remove-expired.ts";
import type { CloudFacts } from "./facts.ts";
import { cloudLimitMs, withCloud } from "./with-cloud.ts";

/**
 * Reports what ended clusters left in the region, and things that only look like ours. Groups cost nothing; machines
 * that outlived their deadline do.
 */
export function leftoversCheck(facts: CloudFacts, region: string): Check {
  return { name: "leftovers", limitMs: cloudLimitMs, run: () => withCloud(facts, () => find(facts, region)) };
}

async function find(facts: CloudFacts, region: string): Promise<Outcome> {
  const [api, instances, groups] = await Promise.all([facts.api(), facts.instances(), facts.groups()]);
  const advice = `Find out who created or changed it in region ${region}, and remove its tags that begin with cluster-e2e:`;
  const outcome = judge(findLeftovers({ ...instances, ...groups }, api.now()), region);
  return withForeignResources(outcome, [...instances.foreignResources, ...groups.foreignResources], advice);
}

function judge(left: ReturnType<typeof findLeftovers>, region: string): Outcome {
  const things = [
    ...left.machines.map((machine) => `machine ${machine.id} ${origin(machine)}`),
    ...left.groups.map((group) => `security group ${group.id} ${origin(group)}`),
  ];
  if (things.length === 0) return pass("None");
  return warn(
    `Expired clusters have left ${things.join("; ")}.`,
    `The next create in this region removes ${things.length === 1 ? "it" : "them"}: cluster-cloud create --cloud-region ${region} …`,
  );
}

const origin = ({ clusterId, expiresAt }: Machine | Group): string =>
  `(cluster ${clusterId}, expired ${expiresAt?.toISOString()})`;

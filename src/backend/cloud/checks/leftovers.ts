import type { Instance, SecurityGroup } from "@aws-sdk/client-ec2";
import { type Check, type Outcome, pass, warn } from "../../../doctor/check.ts";
import { readExpiry } from "../records.ts";
import { findLeftovers } from "../sweep.ts";
import { readTags } from "../tags.ts";
import type { CloudFacts } from "./facts.ts";
import { cloudLimitMs, withCloud } from "./with-cloud.ts";

/** What ended clusters left in the region. Groups cost nothing, machines that outlived their deadline do. */
export function leftoversCheck(facts: CloudFacts, region: string): Check {
  return { name: "leftovers", limitMs: cloudLimitMs, run: () => withCloud(facts, () => find(facts, region)) };
}

async function find(facts: CloudFacts, region: string): Promise<Outcome> {
  const [api, instances, groups] = await Promise.all([facts.api(), facts.instances(), facts.groups()]);
  const { machineIds, groupIds } = findLeftovers({ instances, groups }, api.now());
  const machines = instances.filter((instance) => machineIds.includes(instance.InstanceId ?? ""));
  const idle = groups.filter((group) => groupIds.includes(group.GroupId ?? ""));
  const things = [
    ...machines.map((machine) => `machine ${machine.InstanceId} ${origin(machine)}`),
    ...idle.map((group) => `security group ${group.GroupId} ${origin(group)}`),
  ];
  if (things.length === 0) return pass("None");
  return warn(
    `Ended clusters have left ${things.join("; ")}.`,
    `The next create in this region removes ${things.length === 1 ? "it" : "them"}: cluster-cloud create --cloud-region ${region} …`,
  );
}

function origin(thing: Instance | SecurityGroup): string {
  const tags = readTags(thing.Tags);
  return `(cluster ${tags.clusterId}, ended ${readExpiry(tags)?.toISOString()})`;
}

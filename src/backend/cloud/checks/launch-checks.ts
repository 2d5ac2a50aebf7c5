import { type Check, fail, type Outcome, pass, warn } from "../../../model/check.ts";
import type { CheckedDefaults, CloudFacts } from "./facts.ts";
import { metadataText } from "../launch/require-metadata2.ts";
import { cloudLimitMs, failureOf, withCloud } from "./with-cloud.ts";

/** Checks whether the region has everything that a `create` without options needs for its machines. */
export function launchChecks(facts: CloudFacts, defaults: CheckedDefaults): readonly Check[] {
  const check = (name: string, ask: () => Promise<Outcome>): Check => ({
    name,
    limitMs: cloudLimitMs,
    run: () => withCloud(facts, ask),
  });
  return [
    check("network", () => checkNetwork(facts, defaults)),
    check("image", async () => {
      const image = await facts.image();
      return pass(`${defaults.distribution}: ${image.id} (${image.name}); instance metadata: ${metadataText(image)}`);
    }),
    check("instance type", () => checkInstanceType(facts, defaults)),
  ];
}

async function checkNetwork(facts: CloudFacts, { region }: CheckedDefaults): Promise<Outcome> {
  const subnets = await facts.subnets();
  if (subnets.length === 0) {
    return fail(
      `Region ${region} has no default network with a subnet.`,
      "Create one (aws ec2 create-default-vpc), pass `subnetId` to create, or choose another `region`.",
    );
  }
  const network = `${subnets[0]?.VpcId} with ${subnets.length} subnet${subnets.length === 1 ? "" : "s"}`;
  const open = subnets.filter((subnet) => subnet.MapPublicIpOnLaunch === true);
  if (open.length > 0)
    return pass(`${network}, of which ${open.length} assign${open.length === 1 ? "s" : ""} public addresses`);
  return warn(
    `No subnet of the default network (${network}) assigns public addresses automatically.`,
    "create requests public addresses anyway. If they are unreachable, pass it a `subnetId` with a route to the internet.",
  );
}

async function checkInstanceType(facts: CloudFacts, { instanceType, region }: CheckedDefaults): Promise<Outcome> {
  const zones = await facts.zones();
  if (zones.length === 0) {
    return fail(
      `The instance type ${instanceType} is not offered in region ${region}.`,
      "Pass create an `instanceType` that is, such as m6i.large, or choose another `region`.",
    );
  }
  const offered = `${instanceType} is offered in ${zones.join(", ")}`;
  if ((await failureOf(facts.subnets())) !== undefined) return pass(offered);
  const subnets = await facts.subnets();
  if (subnets.length === 0 || subnets.some((subnet) => zones.includes(subnet.AvailabilityZone ?? "")))
    return pass(offered);
  return fail(
    `${offered}, where the default network has no subnet.`,
    "Pass create another `instanceType`, or a `subnetId`.",
  );
}

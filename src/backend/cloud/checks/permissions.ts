import { numbered } from "../../../system/amounts.ts";
import { randomUUID } from "node:crypto";
import { type ClusterError, hintOf, messageOf } from "../../../errors.ts";
import { moreDetail, optionName } from "../../../references.ts";
import { type Check, type Outcome, fail, pass, skip, warn } from "../../../model/check.ts";
import { version } from "../../../version.ts";
import { encodedMessage, isFailure } from "../api/api-errors.ts";
import type { Action } from "../api/api.ts";
import { launchRequest } from "../launch/launch.ts";
import { metadataText } from "../launch/look-at-machines.ts";
import { groupName, toTags } from "../tags.ts";
import { type CheckedDefaults, type CloudFacts, cloudCheck, failureOf, isDenied } from "./facts.ts";

/**
 * Returns one check for each action that the program uses. Tries read actions by reading, and create actions with a dry
 * run. Skips actions on existing resources, because those that exist belong to someone.
 */
export function permissionChecks(facts: CloudFacts, defaults: CheckedDefaults): readonly Check[] {
  const check = (action: Action, ask: () => Promise<Outcome>): Check =>
    cloudCheck(facts, `ec2:${action}`, ask);
  const byReading = (action: Action, read: () => Promise<unknown>): Check =>
    check(action, () => tryReading(read));
  const onExisting = (action: Action, what: string): Check =>
    check(action, () => Promise.resolve(skip(`Not tested: a dry run needs an existing ${what}.`)));
  return [
    byReading("DescribeInstances", facts.instances),
    byReading("DescribeSecurityGroups", facts.defaultGroups),
    byReading("DescribeImages", facts.image),
    byReading("DescribeSubnets", facts.subnets),
    check("DescribeRegions", () => tryRegions(facts)),
    check("DescribeInstanceTypes", () => tryInstanceType(facts)),
    check("DescribeInstanceTypeOfferings", () => tryOfferings(facts)),
    check("CreateSecurityGroup", () => tryGroup(facts)),
    onExisting("AuthorizeSecurityGroupIngress", "security group"),
    check("RunInstances", () => tryLaunch(facts, defaults)),
    onExisting("GetConsoleOutput", "machine"),
    onExisting("ModifyInstanceMetadataOptions", "machine"),
    onExisting("TerminateInstances", "machine"),
    onExisting("DeleteSecurityGroup", "security group"),
  ];
}

async function tryReading(read: () => Promise<unknown>): Promise<Outcome> {
  const error = await failureOf(read());
  if (isDenied(error)) return denied(error);
  const wasAnswered = error === undefined || error.id === "image-not-found";
  return wasAnswered ? pass("Allowed") : skip(`Not known: ${messageOf(error)}`);
}

function denied(error: ClusterError): Outcome {
  const remedy = `Allow ec2:${String(error.facts["action"])} for this user or role.`;
  const detail = moreDetail("-v", "the API's encoded authorization message");
  const hasDetail = encodedMessage(error.cause) !== undefined;
  return fail(messageOf(error), hasDetail ? `${remedy} ${detail}` : remedy);
}

/** Turns the lack of a permission that clusters can do without into a warning. */
const dispensable = (outcome: Outcome, without: string): Outcome =>
  outcome.status === "fail"
    ? warn(outcome.message, `${outcome.remedy} Without it, ${without}.`)
    : outcome;

/** Used only to explain why a region doesn't answer or doesn't have a cluster. */
const tryRegions = async (facts: CloudFacts): Promise<Outcome> =>
  dispensable(
    await dryRun(
      facts.inTime((api, signal) => api.call("DescribeRegions", { DryRun: true }, signal)),
    ),
    "the error for a cluster that is not found cannot name other regions that have it",
  );

/** Without the answer, a create gets it from the launch itself. */
const tryInstanceType = async (facts: CloudFacts): Promise<Outcome> =>
  dispensable(
    await tryReading(facts.instanceType),
    "create cannot check before the launch that the region has the instance type and that the image fits it",
  );

/** Only doctor and dry runs ask for offerings. Without them, a create gets its answer from the launch itself. */
const tryOfferings = async (facts: CloudFacts): Promise<Outcome> =>
  dispensable(
    await tryReading(facts.zones),
    "doctor can neither check that the region offers the instance type nor test a launch",
  );

async function tryGroup(facts: CloudFacts): Promise<Outcome> {
  const [subnet] = await facts.subnets();
  if (subnet?.VpcId === undefined)
    return skip("Not tested: there is no default network to test it in.");
  const name = groupName(`doctor-${randomUUID()}`);
  const request = {
    GroupName: name,
    Description: "Dry run, never created",
    VpcId: subnet.VpcId,
    TagSpecifications: [{ ResourceType: "security-group" as const, Tags: toTags(name, tags, []) }],
    DryRun: true,
  };
  return dryRun(facts.inTime((api, signal) => api.call("CreateSecurityGroup", request, signal)));
}

/** The tags of a dry run. Policies may require tags, and nothing tagged like this must be taken for a cluster. */
const tags = { clusterId: "doctor", createdBy: version };

async function tryLaunch(facts: CloudFacts, defaults: CheckedDefaults): Promise<Outcome> {
  const parts = await findLaunchParts(facts);
  if (parts === undefined)
    return skip("Not tested: an image, a network or a zone for the test is missing or not known.");
  const { image, subnet, group } = parts;
  const plan = {
    clusterId: "doctor",
    directory: "",
    instanceType: defaults.instanceType,
    image,
    subnets: [],
    groupId: group.GroupId ?? "",
    userDataOf: () => "#cloud-config\n",
    tags,
    customTags: [],
  };
  const launchSubnet = {
    id: subnet.SubnetId ?? "",
    vpcId: subnet.VpcId ?? "",
    zone: subnet.AvailabilityZone ?? "",
  };
  const request = launchRequest(plan, { role: "master", count: 1, subnet: launchSubnet });
  return dryRun(
    facts.inTime((api, signal) => api.call("RunInstances", { ...request, DryRun: true }, signal)),
  );
}

/** Finds what a machine could be created from; `undefined` if something is missing, which has a check of its own. */
async function findLaunchParts(facts: CloudFacts) {
  const wanted = [facts.image(), facts.subnets(), facts.zones(), facts.defaultGroups()] as const;
  const failures = await Promise.all(wanted.map(failureOf));
  if (failures.some((failure) => failure !== undefined)) return undefined;
  const [image, subnets, zones, groups] = await Promise.all(wanted);
  const subnet = subnets.find(({ AvailabilityZone }) => zones.includes(AvailabilityZone ?? ""));
  const group = subnet && groups.find(({ VpcId }) => VpcId === subnet.VpcId);
  return group && { image, subnet, group };
}

/** Asks whether an action would be carried out. The API refuses a dry run either way; its code gives the result. */
async function dryRun(asked: Promise<unknown>): Promise<Outcome> {
  const refusal = await failureOf(asked);
  if (refusal === undefined) {
    return fail(
      "The API carried out a request that was only a dry run: it is not EC2.",
      "Check AWS_ENDPOINT_URL_EC2, and remove what was created there.",
    );
  }
  if (isFailure(refusal, "dry-run-passed")) return pass("Allowed");
  if (isDenied(refusal)) return denied(refusal);
  if (refusal.id === "capacity-lacking")
    return warn(messageOf(refusal), hintOf(refusal) ?? "Request fewer machines.");
  return fail(messageOf(refusal), hintOf(refusal) ?? "Resolve what the message describes.");
}

export function launchChecks(facts: CloudFacts, defaults: CheckedDefaults): readonly Check[] {
  return [
    cloudCheck(facts, "network", () => checkNetwork(facts, defaults)),
    cloudCheck(facts, "image", async () => {
      const image = await facts.image();
      return pass(
        `${defaults.distribution}: ${image.id} (${image.name}); instance metadata: ${metadataText(image)}`,
      );
    }),
    cloudCheck(facts, "instance type", () => checkInstanceType(facts, defaults)),
  ];
}

async function checkNetwork(facts: CloudFacts, { region }: CheckedDefaults): Promise<Outcome> {
  const subnets = await facts.subnets();
  if (subnets.length === 0) {
    return fail(
      `Region ${region} has no default network with a subnet.`,
      `Create one (aws ec2 create-default-vpc), pass ${optionName("subnetId")} to create, or choose another ${optionName("region")}.`,
    );
  }
  const network = `${subnets[0]?.VpcId} with ${numbered(subnets.length, "subnet")}`;
  const open = subnets.filter((subnet) => subnet.MapPublicIpOnLaunch === true);
  if (open.length > 0)
    return pass(
      `${network}, of which ${open.length} assign${open.length === 1 ? "s" : ""} public addresses`,
    );
  return warn(
    `No subnet of the default network (${network}) assigns public addresses automatically.`,
    `create requests public addresses anyway. If they are unreachable, pass it a ${optionName("subnetId")} with a route to the internet.`,
  );
}

async function checkInstanceType(
  facts: CloudFacts,
  { instanceType, region }: CheckedDefaults,
): Promise<Outcome> {
  const zones = await facts.zones();
  if (zones.length === 0) {
    return fail(
      `The instance type ${instanceType} is not offered in region ${region}.`,
      `Pass create an ${optionName("instanceType")} that is, such as m6i.large, or choose another ${optionName("region")}.`,
    );
  }
  const offered = `${instanceType} is offered in ${zones.join(", ")}`;
  if ((await failureOf(facts.subnets())) !== undefined) return pass(offered);
  const subnets = await facts.subnets();
  if (
    subnets.length === 0 ||
    subnets.some((subnet) => zones.includes(subnet.AvailabilityZone ?? ""))
  )
    return pass(offered);
  return fail(
    `${offered}, where the default network has no subnet.`,
    `Pass create another ${optionName("instanceType")}, or a ${optionName("subnetId")}.`,
  );
}

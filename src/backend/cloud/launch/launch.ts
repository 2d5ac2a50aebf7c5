import { randomUUID } from "node:crypto";
import type { RunInstancesCommandInput } from "@aws-sdk/client-ec2";
import { ClusterError, revised, messageOf } from "../../../errors.ts";
import { optionName } from "../../../references.ts";
import type { Role } from "../../../model/cluster-record.ts";
import { numbered } from "../../../system/amounts.ts";
import type { Clock } from "../../../system/runtime.ts";
import { failureCode, isFailure, wasRefused } from "../api/api-errors.ts";
import { type CloudApi, untilVisible } from "../api/api.ts";
import { type CustomTag, type TagValues, toTags } from "../tags.ts";
import type { LaunchImage } from "./images.ts";
import type { LaunchSubnet } from "./network.ts";
import { type SavedLaunch, saveLaunch } from "./saved-requests.ts";

/** Room for the artifact, its unpacked files, and images. */
const rootGigabytes = 60;

/** Everything that the machines of one cluster have in common. */
export interface LaunchPlan {
  readonly clusterId: string;
  readonly directory: string;
  readonly instanceType: string;
  readonly image: LaunchImage;
  /** Tried in this order. */
  readonly subnets: readonly LaunchSubnet[];
  readonly groupId: string;
  /** All machines of one request get the same user data. */
  readonly userDataOf: (role: Role) => string;
  readonly tags: TagValues;
  readonly customTags: readonly CustomTag[];
}

/** The launches requested so far, by name: a rollback must terminate their machines. */
export type LaunchLedger = Map<string, SavedLaunch>;

/**
 * Launches all machines of one role with one request, all or none. If a subnet has no room, tries the next one. Writes
 * each request to the disk and to the ledger before sending it.
 */
export async function launchRole(
  api: CloudApi,
  job: {
    readonly plan: LaunchPlan;
    readonly role: Role;
    readonly count: number;
    readonly ledger: LaunchLedger;
  },
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const { plan, role, count } = job;
  const refusals: Refusal[] = [];
  for (const [attempt, subnet] of plan.subnets.entries()) {
    const request = launchRequest(plan, { role, count, subnet });
    try {
      const launch = { name: `${role}-${attempt}`, request, machineIds: undefined };
      return await sendRequest(api, launch, { ...job, clock }, signal);
    } catch (error) {
      if (!isFailure(error, "zone-full")) throw tooMany(error, plan, { count, role });
      refusals.push({ zone: subnet.zone, code: failureCode(error) ?? "", error });
      if (attempt === plan.subnets.length - 1)
        throw noRoom(refusals, plan, { role, count, region: api.region });
    }
  }
}

/** The answer of a zone without room. */
interface Refusal {
  readonly zone: string;
  readonly code: string;
  readonly error: unknown;
}

async function sendRequest(
  api: CloudApi,
  launch: SavedLaunch,
  job: { readonly plan: LaunchPlan; readonly ledger: LaunchLedger; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const { plan, ledger, clock } = job;
  const settle = async (machineIds: readonly string[]): Promise<void> => {
    const settled = { ...launch, machineIds };
    ledger.set(launch.name, settled);
    await saveLaunch(plan.directory, settled);
  };
  await saveLaunch(plan.directory, launch);
  signal.throwIfAborted();
  ledger.set(launch.name, launch);
  try {
    const send = () => api.call("RunInstances", launch.request, signal);
    const answer = await untilVisible(send, "group-missing", clock, signal);
    await settle(
      (answer.Instances ?? [])
        .map((instance) => instance.InstanceId)
        .filter((id) => id !== undefined),
    );
  } catch (error) {
    if (wasRefused(error)) await settle([]);
    throw error;
  }
}

/** Returns the request for the machines of one role in one subnet; a dry run uses it too. */
export function launchRequest(
  plan: LaunchPlan,
  part: { readonly role: Role; readonly count: number; readonly subnet: LaunchSubnet },
): RunInstancesCommandInput {
  const tags = toTags(
    `${plan.clusterId} ${part.role}`,
    { ...plan.tags, role: part.role, indexBase: "0" },
    plan.customTags,
  );
  return {
    ClientToken: randomUUID(),
    ImageId: plan.image.id,
    InstanceType: plan.instanceType as NonNullable<RunInstancesCommandInput["InstanceType"]>,
    MinCount: part.count,
    MaxCount: part.count,
    UserData: Buffer.from(plan.userDataOf(part.role)).toString("base64"),
    InstanceInitiatedShutdownBehavior: "terminate",
    // Hop limit 1 keeps containers on a node from the metadata, and so from any role that the node has.
    MetadataOptions: {
      HttpTokens: plan.image.knowsMetadata2 ? "required" : "optional",
      HttpPutResponseHopLimit: 1,
      HttpEndpoint: "enabled",
    },
    NetworkInterfaces: [
      {
        DeviceIndex: 0,
        SubnetId: part.subnet.id,
        Groups: [plan.groupId],
        AssociatePublicIpAddress: true,
        DeleteOnTermination: true,
      },
    ],
    BlockDeviceMappings: [
      {
        DeviceName: plan.image.rootDevice,
        Ebs: {
          VolumeSize: Math.max(rootGigabytes, plan.image.leastGigabytes),
          VolumeType: "gp3",
          Encrypted: true,
          DeleteOnTermination: true,
        },
      },
      // The image may say that they outlive their machine, and would then cost money until somebody finds them.
      ...plan.image.furtherDevices.map((DeviceName) => ({
        DeviceName,
        Ebs: { Encrypted: true, DeleteOnTermination: true },
      })),
    ],
    TagSpecifications: [
      { ResourceType: "instance", Tags: tags },
      { ResourceType: "volume", Tags: tags },
    ],
  };
}

/** `us-west-2a, us-west-2b: InsufficientInstanceCapacity; us-west-2d: Unsupported` */
function zonesText(refusals: readonly Refusal[]): string {
  const zonesByCode = Map.groupBy(refusals, ({ code }) => code);
  return [...zonesByCode]
    .map(([code, group]) => `${group.map(({ zone }) => zone).join(", ")}: ${code}`)
    .join("; ");
}

function noRoom(
  refusals: readonly Refusal[],
  plan: LaunchPlan,
  asked: { readonly role: Role; readonly count: number; readonly region: string },
): ClusterError {
  const what = `${asked.count} × ${plan.instanceType} for ${asked.role}`;
  return new ClusterError(
    "capacity-lacking",
    `No zone of region ${asked.region} currently has capacity for ${what} (tried ${zonesText(refusals)}).`,
    {
      hint: `Choose another ${optionName("instanceType")}, such as m5a.large or m6i.large, or another ${optionName("region")}, or try again later.`,
      facts: {
        region: asked.region,
        zones: refusals.map(({ zone }) => zone),
        instanceType: plan.instanceType,
        count: asked.count,
        code: refusals.at(-1)?.code,
      },
      cause: refusals.at(-1)?.error,
    },
  );
}

function tooMany(
  error: unknown,
  plan: LaunchPlan,
  asked: { readonly role: Role; readonly count: number },
): unknown {
  if (!(error instanceof ClusterError) || error.id !== "capacity-lacking") return error;
  const counts = (plan.tags.counts ?? "")
    .split(" ")
    .map((pair) => pair.split("=") as [string, string]);
  const total = counts.reduce((sum, [, count]) => sum + Number(count), 0);
  const parts = counts
    .map(([role, count]) => numbered(Number(count), role.replace("_", " ")))
    .join(", ");
  return revised(error, {
    message: `${messageOf(error)} Requested: ${total} × ${plan.instanceType} (${parts}).`,
    facts: { ...asked, total, instanceType: plan.instanceType },
    cause: error.cause,
  });
}

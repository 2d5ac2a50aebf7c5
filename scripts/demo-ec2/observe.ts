import { randomUUID } from "node:crypto";
import type { Instance } from "@aws-sdk/client-ec2";
import { failureCode } from "../../src/backend/cloud/api/api-errors.ts";
import type { Action, Calls, CloudApi } from "../../src/backend/cloud/api/api.ts";
import { findImage } from "../../src/backend/cloud/launch/images.ts";
import { tagNames } from "../../src/backend/cloud/tags.ts";
import { systemClock } from "../../src/system/runtime.ts";
import { waits } from "../../src/system/waits.ts";
import type { Requested } from "./remove-all.ts";

/** What a cloud answered to the questions of `observe`. */
export interface Observations {
  /** States, error codes and parts of an answer, by question. They should be the same in every cloud. */
  readonly answers: Readonly<Record<string, string>>;
  /** Seconds, by what happened. They differ, but must be within the limits of the program. */
  readonly seconds: Readonly<Record<string, number>>;
}

export interface ObservedCloud {
  readonly api: CloudApi;
  /** The same API, with credentials that nobody has. */
  readonly strangers: () => Promise<CloudApi>;
  /** The cluster id in the tags of everything that is created, so that people can find it. */
  readonly mark: string;
  /** Gets what is created, so that it can be removed. */
  readonly requested: Requested;
}

/** Seconds that the program allows for what takes time. */
export const limits: Readonly<Record<string, number>> = {
  "an instance's id is known": waits.visibility.limitMs / 1000,
  "an instance is found by its tag": waits.visibility.limitMs / 1000,
  "an instance has a public address": 300,
  "an instance runs": 300,
  "a group's id is known": waits.visibility.limitMs / 1000,
  "an instance has ended": waits.ending.limitMs / 1000,
  "an ended instance releases its group": waits.rollBack.limitMs / 1000,
};

/** The instance ends by itself a quarter of an hour after its launch, whatever becomes of this program. */
const userData = "#cloud-config\nruncmd:\n  - [shutdown, -P, '+15']\n";
const unknownInstance = "i-0123456789abcdef0";
const patienceMs = 10 * 60_000;
const pauseMs = 500;

/**
 * Asks a cloud questions whose answers the program relies on, and launches one small instance to watch its states. Ends the instance
 * and deletes its group; after a failure, the caller must do it.
 */
export async function observe(cloud: ObservedCloud, signal: AbortSignal): Promise<Observations> {
  const observer = new Observer(cloud, signal);
  const image = await findImage(cloud.api, "debian-12", undefined, signal);
  const launch = { ImageId: image.id, InstanceType: "t3.micro", MinCount: 1, MaxCount: 1 } as const;
  await askOfNothing(observer, launch);
  const groupId = await watchGroup(observer);
  await watchInstance(observer, launch, groupId);
  return { answers: observer.answers, seconds: observer.seconds };
}

class Observer {
  readonly answers: Record<string, string> = {};
  readonly seconds: Record<string, number> = {};
  readonly cloud: ObservedCloud;
  readonly #signal: AbortSignal;

  constructor(cloud: ObservedCloud, signal: AbortSignal) {
    this.cloud = cloud;
    this.#signal = signal;
  }

  /** Returns `ok` and the answer, or the code of the refusal. Anything else is thrown. */
  async outcome<Name extends Action>(
    action: Name,
    input: Calls[Name]["input"],
    api = this.cloud.api,
  ): Promise<readonly [string, Calls[Name]["output"]?]> {
    try {
      return ["ok", await api.call(action, input, this.#signal)];
    } catch (error) {
      const code = failureCode(error);
      if (code === undefined || this.#signal.aborted) throw error;
      return [code];
    }
  }

  async ask<Name extends Action>(
    question: string,
    action: Name,
    input: Calls[Name]["input"],
    api?: CloudApi,
  ) {
    [this.answers[question]] = await this.outcome(action, input, api);
  }

  async call<Name extends Action>(
    action: Name,
    input: Calls[Name]["input"],
  ): Promise<Calls[Name]["output"]> {
    return await this.cloud.api.call(action, input, this.#signal);
  }

  async until(event: string, sinceMs: number, isSo: () => Promise<boolean>): Promise<void> {
    const deadlineMs = Date.now() + patienceMs;
    while (!(await isSo())) {
      if (Date.now() > deadlineMs)
        throw new Error(`not in ${patienceMs / 60_000} minutes: ${event}`);
      await systemClock.sleep(pauseMs, this.#signal);
    }
    this.seconds[event] = Math.round((Date.now() - sinceMs) / 100) / 10;
  }

  tags<Type extends "instance" | "volume" | "security-group">(ResourceType: Type) {
    return { ResourceType, Tags: [{ Key: tagNames.clusterId, Value: this.cloud.mark }] };
  }
}

type Launch = Pick<
  Calls["RunInstances"]["input"],
  "ImageId" | "InstanceType" | "MinCount" | "MaxCount"
>;

/** Questions about what doesn't exist, and requests that are refused. */
async function askOfNothing(observer: Observer, launch: Launch): Promise<void> {
  const strangers = await observer.cloud.strangers();
  await observer.ask("an unknown access key", "DescribeInstances", {}, strangers);
  await observer.ask("an unknown instance", "DescribeInstances", {
    InstanceIds: [unknownInstance],
  });
  await observer.ask("an invalid instance id", "DescribeInstances", { InstanceIds: ["i-none"] });
  const filter = { Name: "colour", Values: ["red"] };
  await observer.ask("an unknown filter", "DescribeInstances", { Filters: [filter] });
  await observer.ask("an unknown image", "DescribeImages", { ImageIds: ["ami-0123456789abcdef0"] });
  await observer.ask("an unknown subnet", "DescribeSubnets", {
    SubnetIds: ["subnet-0123456789abcdef0"],
  });
  await observer.ask("the console of an unknown instance", "GetConsoleOutput", {
    InstanceId: unknownInstance,
  });
  await observer.ask("ending an unknown instance", "TerminateInstances", {
    InstanceIds: [unknownInstance],
  });
  await observer.ask("deleting an unknown group", "DeleteSecurityGroup", {
    GroupId: "sg-0123456789abcdef0",
  });
  await observer.ask("a dry run of a launch", "RunInstances", { ...launch, DryRun: true });
  const unknownType = "m5.tiny" as NonNullable<Launch["InstanceType"]>;
  await observer.ask("a launch of an unknown type", "RunInstances", {
    ...launch,
    InstanceType: unknownType,
  });
  await observer.ask("a launch of no instance", "RunInstances", {
    ...launch,
    MinCount: 0,
    MaxCount: 0,
  });
}

/** Creates a group, and returns its id. */
async function watchGroup(observer: Observer): Promise<string> {
  const group = {
    GroupName: observer.cloud.mark,
    Description: "cluster-e2e: ./scripts/demo ec2",
    TagSpecifications: [observer.tags("security-group")],
  };
  const createdMs = Date.now();
  const { GroupId = "" } = await observer.call("CreateSecurityGroup", group);
  observer.cloud.requested.groupIds.add(GroupId);
  await observer.until("a group's id is known", createdMs, async () => {
    const [code] = await observer.outcome("DescribeSecurityGroups", { GroupIds: [GroupId] });
    return code === "ok";
  });
  await observer.ask("a group's name a second time", "CreateSecurityGroup", group);
  const range = [
    { IpProtocol: "tcp", FromPort: 22, ToPort: 22, IpRanges: [{ CidrIp: "192.0.2.1/32" }] },
  ];
  const rule = { GroupId, IpPermissions: range };
  await observer.ask("a rule of a group", "AuthorizeSecurityGroupIngress", rule);
  await observer.ask("the same rule again", "AuthorizeSecurityGroupIngress", rule);
  await observer.ask("removing the rule", "RevokeSecurityGroupIngress", rule);
  await observer.ask("removing it again", "RevokeSecurityGroupIngress", rule);
  return GroupId;
}

/** Launches an instance in the group; then see `watchEnd`. */
async function watchInstance(observer: Observer, launch: Launch, GroupId: string): Promise<void> {
  const { answers } = observer;
  const request = {
    ...launch,
    ClientToken: randomUUID(),
    UserData: Buffer.from(userData).toString("base64"),
    InstanceInitiatedShutdownBehavior: "terminate" as const,
    SecurityGroupIds: [GroupId],
    TagSpecifications: [observer.tags("instance"), observer.tags("volume")],
  };
  observer.cloud.requested.clientTokens.add(request.ClientToken);
  const launchMs = Date.now();
  const launched = (await observer.call("RunInstances", request)).Instances?.[0];
  const id = launched?.InstanceId ?? "";
  answers["the answer to a launch"] = shape(launched);
  const again = (await observer.call("RunInstances", request)).Instances?.[0];
  answers["the same launch again"] =
    again?.InstanceId === id ? "the same instance" : "another instance";
  await observer.ask("its token for another launch", "RunInstances", { ...request, MaxCount: 2 });

  const states: string[] = [];
  const see = (state: string | undefined): void => {
    if (state !== undefined && state !== states.at(-1)) states.push(state);
  };
  see(launched?.State?.Name);
  const look = async (): Promise<Instance | undefined> => {
    const [, answer] = await observer.outcome("DescribeInstances", { InstanceIds: [id] });
    const instance = answer?.Reservations?.[0]?.Instances?.[0];
    see(instance?.State?.Name);
    return instance;
  };
  const byTag = { Filters: [{ Name: `tag:${tagNames.clusterId}`, Values: [observer.cloud.mark] }] };
  await observer.until(
    "an instance's id is known",
    launchMs,
    async () => (await look()) !== undefined,
  );
  await observer.until("an instance is found by its tag", launchMs, async () => {
    const { Reservations = [] } = await observer.call("DescribeInstances", byTag);
    return Reservations.length > 0;
  });
  const hasAddress = async (): Promise<boolean> => (await look())?.PublicIpAddress !== undefined;
  await observer.until("an instance has a public address", launchMs, hasAddress);
  await observer.until(
    "an instance runs",
    launchMs,
    async () => (await look())?.State?.Name === "running",
  );
  answers["an instance that runs"] = shape(await look());
  await observer.ask("deleting a group in use", "DeleteSecurityGroup", { GroupId });
  const metadata = { InstanceId: id, HttpTokens: "required" } as const;
  await observer.ask("requiring metadata 2 of it", "ModifyInstanceMetadataOptions", metadata);

  await watchEnd(observer, { id, GroupId, see, look });
  answers["an instance's states"] = states.join(", ");
}

interface RunningInstance {
  readonly id: string;
  readonly GroupId: string;
  readonly see: (state: string | undefined) => void;
  readonly look: () => Promise<Instance | undefined>;
}

/** Ends the instance and deletes its group. */
async function watchEnd(
  observer: Observer,
  { id, GroupId, see, look }: RunningInstance,
): Promise<void> {
  const { answers } = observer;
  const endMs = Date.now();
  const ended = (await observer.call("TerminateInstances", { InstanceIds: [id] }))
    .TerminatingInstances?.[0];
  see(ended?.CurrentState?.Name);
  answers["ending an instance"] = `${ended?.PreviousState?.Name} → ${ended?.CurrentState?.Name}`;
  await observer.until(
    "an instance has ended",
    endMs,
    async () => (await look())?.State?.Name === "terminated",
  );
  const gone = await look();
  answers["an ended instance"] = shape(gone);
  answers["why it ended"] =
    `${gone?.StateReason?.Code}; ${gone?.StateTransitionReason?.replaceAll(/\d/g, "9")}`;
  await observer.ask("ending it again", "TerminateInstances", { InstanceIds: [id] });
  await observer.until("an ended instance releases its group", endMs, async () => {
    const [code] = await observer.outcome("DeleteSecurityGroup", { GroupId });
    return code === "ok" || code === "InvalidGroup.NotFound";
  });
}

/** The names of what an instance's description contains, of that which the program reads. */
function shape(instance: Instance | undefined): string {
  const read = {
    state: instance?.State?.Name,
    address: instance?.PrivateIpAddress,
    "public address": instance?.PublicIpAddress,
    group: instance?.SecurityGroups?.[0]?.GroupId,
    interface: instance?.NetworkInterfaces?.[0]?.NetworkInterfaceId,
    subnet: instance?.SubnetId,
    volume: instance?.BlockDeviceMappings?.[0]?.Ebs?.VolumeId,
    tags: instance?.Tags?.[0]?.Key,
    "launch time": instance?.LaunchTime,
    index: instance?.AmiLaunchIndex,
    token: instance?.ClientToken,
  };
  const named = Object.entries(read).filter(([, value]) => value !== undefined && value !== "");
  return [
    read.state ?? "no state",
    ...named.map(([name]) => name).filter((name) => name !== "state"),
  ].join(", ");
}

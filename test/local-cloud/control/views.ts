import type { Lifecycle } from "../machines/lifecycle.ts";
import type { Instance, InstanceState, StateReason, Volume } from "../state/instance.ts";
import type { IngressRule, Region } from "../state/region.ts";

/** An instance's actual state, even if calls can't see it yet, with details of the driver such as `containerId`. */
export interface InstanceView {
  readonly instanceId: string;
  readonly region: string;
  readonly state: InstanceState;
  readonly stateReason?: StateReason;
  readonly publicAddress?: string;
  readonly privateAddress: string;
  readonly imageId: string;
  readonly imageName: string;
  readonly instanceType: string;
  readonly zone: string;
  readonly subnetId: string;
  readonly groupIds: readonly string[];
  readonly reservationId: string;
  readonly launchIndex: number;
  readonly launchTime: string;
  readonly clientToken?: string;
  readonly shutdownBehavior: string;
  readonly httpTokens: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly volumeTags: Readonly<Record<string, string>>;
  readonly volumes: readonly Volume[];
  readonly userData: string;
  /** Container machines only. */
  readonly containerId?: string;
  /** In-process machines only. */
  readonly sshPort?: string;
}

export interface GroupView {
  readonly groupId: string;
  readonly groupName: string;
  readonly region: string;
  readonly vpcId: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly rules: readonly IngressRule[];
}

export function instanceView(instance: Instance, lifecycle: Lifecycle): InstanceView {
  const { launch } = instance;
  return {
    instanceId: instance.id,
    region: instance.region,
    state: instance.state,
    ...(instance.stateReason !== undefined && { stateReason: instance.stateReason }),
    ...(instance.publicAddress !== undefined && { publicAddress: instance.publicAddress }),
    privateAddress: instance.privateAddress,
    imageId: launch.image.id,
    imageName: launch.image.name,
    instanceType: launch.type.name,
    zone: launch.subnet.zone,
    subnetId: launch.subnet.id,
    groupIds: launch.groupIds,
    reservationId: instance.reservationId,
    launchIndex: instance.launchIndex,
    launchTime: instance.launchTime.toISOString(),
    ...(launch.clientToken !== undefined && { clientToken: launch.clientToken }),
    shutdownBehavior: launch.shutdownBehavior,
    httpTokens: instance.metadataOptions.httpTokens,
    tags: Object.fromEntries(instance.tags),
    volumeTags: Object.fromEntries(launch.volumeTags),
    volumes: instance.volumes,
    userData: Buffer.from(launch.userData).toString("utf8"),
    ...lifecycle.detail(instance.id),
  };
}

/** Returns the groups that were created, without those that every VPC has. */
export function groupViews(regions: readonly Region[]): readonly GroupView[] {
  return regions.flatMap((region) =>
    [...region.groups.values()]
      .filter((group) => group.name !== "default")
      .map((group) => ({
        groupId: group.id,
        groupName: group.name,
        region: region.name,
        vpcId: group.vpcId,
        tags: Object.fromEntries(group.tags),
        rules: group.rules,
      })),
  );
}

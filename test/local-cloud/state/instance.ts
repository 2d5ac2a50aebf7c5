import type { Image } from "../catalogue/images.ts";
import type { InstanceType } from "../catalogue/instance-types.ts";
import type { Subnet } from "../catalogue/networks.ts";
import type { Tags } from "../endpoint/filters.ts";

export type InstanceState =
  | "pending"
  | "running"
  | "stopping"
  | "stopped"
  | "shutting-down"
  | "terminated";

export interface Volume {
  readonly id: string;
  readonly deviceName: string;
  readonly sizeGiB: number;
  readonly type: string;
  readonly encrypted: boolean;
  readonly deleteOnTermination: boolean;
}

export interface MetadataOptions {
  readonly httpTokens: string;
  readonly httpPutResponseHopLimit: number;
  readonly httpEndpoint: string;
  readonly instanceMetadataTags: string;
}

/** The parameters of one RunInstances request. All its instances share them. */
export interface LaunchSpecification {
  readonly image: Image;
  readonly type: InstanceType;
  readonly subnet: Subnet;
  readonly groupIds: readonly string[];
  readonly givesPublicAddress: boolean;
  /** As the machine receives it: decoded from base64; it may be compressed. */
  readonly userData: Uint8Array;
  readonly clientToken: string | undefined;
  readonly shutdownBehavior: "stop" | "terminate";
  readonly metadataOptions: MetadataOptions;
  readonly volumes: readonly Omit<Volume, "id">[];
  readonly instanceTags: Tags;
  readonly volumeTags: Tags;
}

export interface StateReason {
  readonly code: string;
  readonly message: string;
}

export interface Instance {
  readonly id: string;
  readonly accountId: string;
  readonly region: string;
  readonly reservationId: string;
  readonly launchIndex: number;
  readonly launch: LaunchSpecification;
  readonly launchTime: Date;
  /** When the id and the tags become visible, in milliseconds of this machine's clock, like Date.now(). */
  readonly visibleAt: number;
  readonly tagsVisibleAt: number;
  readonly privateAddress: string;
  readonly volumes: readonly Volume[];
  readonly tags: Map<string, string>;
  /** By volume. */
  readonly volumeTags: ReadonlyMap<string, Map<string, string>>;
  publicAddress: string | undefined;
  /** At first those of the launch. */
  metadataOptions: MetadataOptions;
  state: InstanceState;
  stateReason: StateReason | undefined;
  /** EC2's older, human-readable form: `User initiated (2026-01-02 03:04:05 GMT)`. */
  transitionReason: string;
  terminatedAt: Date | undefined;
}

/** Whether it uses addresses, groups and quota. */
export function isAlive(instance: Instance): boolean {
  return instance.state !== "terminated";
}

/** Whether it counts towards capacity and vCPU limits. */
export function isPowered(instance: Instance): boolean {
  return (
    instance.state === "pending" || instance.state === "running" || instance.state === "stopping"
  );
}

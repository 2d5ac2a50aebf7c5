import type { Image } from "../catalogue/images.ts";
import type { InstanceType } from "../catalogue/instance-types.ts";
import type { Subnet } from "../catalogue/networks.ts";
import type { Tags } from "../endpoint/filters.ts";

export type InstanceState = "pending" | "running" | "stopping" | "stopped" | "shutting-down" | "terminated";

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

/** What one RunInstances asked for; all its instances share it. */
export interface LaunchSpecification {
  readonly image: Image;
  readonly type: InstanceType;
  readonly subnet: Subnet;
  readonly groupIds: readonly string[];
  readonly givesPublicAddress: boolean;
  /** As the machine reads it: decoded from base64, perhaps compressed. */
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
  /** Milliseconds of this machine's clock, as Date.now(): when the id, and when the tags, become visible. */
  readonly visibleAt: number;
  readonly tagsVisibleAt: number;
  readonly privateAddress: string;
  readonly volumes: readonly Volume[];
  readonly tags: Map<string, string>;
  publicAddress: string | undefined;
  /** At first the launch's. */
  metadataOptions: MetadataOptions;
  state: InstanceState;
  stateReason: StateReason | undefined;
  /** EC2's older, human-readable form: `User initiated (2026-01-02 03:04:05 GMT)`. */
  transitionReason: string;
  terminatedAt: Date | undefined;
}

/** Uses addresses, groups and quota. */
export function isAlive(instance: Instance): boolean {
  return instance.state !== "terminated";
}

/** Takes part in capacity and vCPU limits. */
export function isPowered(instance: Instance): boolean {
  return instance.state === "pending" || instance.state === "running" || instance.state === "stopping";
}

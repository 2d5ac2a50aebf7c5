import type { Action } from "./action.ts";
import { authorizeSecurityGroupIngress } from "./authorize-ingress.ts";
import { getConsoleOutput } from "./console-output.ts";
import { describeImages } from "./describe-images.ts";
import { describeInstances } from "./describe-instances.ts";
import { describeInstanceStatus } from "./instance-status.ts";
import { describeNetworkInterfaces } from "./network-interfaces.ts";
import { describeTags } from "./describe-tags.ts";
import { describeVolumes } from "./volumes.ts";
import { rebootInstances, stopInstances } from "./power.ts";
import { describeSubnets, describeVpcs } from "./describe-networks.ts";
import {
  describeAvailabilityZones,
  describeInstanceTypeOfferings,
  describeInstanceTypes,
  describeRegions,
} from "./describe-places.ts";
import { modifyInstanceMetadataOptions } from "./modify-metadata-options.ts";
import { revokeSecurityGroupIngress } from "./revoke-ingress.ts";
import { runInstances } from "./run-instances.ts";
import {
  createSecurityGroup,
  deleteSecurityGroup,
  describeSecurityGroups,
} from "./security-groups.ts";
import { createTags, deleteTags } from "./tags.ts";
import { terminateInstances } from "./terminate-instances.ts";

const all: readonly Action[] = [
  authorizeSecurityGroupIngress,
  createSecurityGroup,
  createTags,
  deleteSecurityGroup,
  deleteTags,
  describeAvailabilityZones,
  describeImages,
  describeInstanceStatus,
  describeInstanceTypeOfferings,
  describeInstanceTypes,
  describeInstances,
  describeNetworkInterfaces,
  describeRegions,
  describeSecurityGroups,
  describeSubnets,
  describeTags,
  describeVolumes,
  describeVpcs,
  getConsoleOutput,
  modifyInstanceMetadataOptions,
  rebootInstances,
  revokeSecurityGroupIngress,
  runInstances,
  stopInstances,
  terminateInstances,
];

/** By the name that requests pass as `Action`. */
export const actions: ReadonlyMap<string, Action> = new Map(
  all.map((action) => [action.name, action]),
);

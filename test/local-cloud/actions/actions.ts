import type { Action } from "./action.ts";
import { authorizeSecurityGroupIngress } from "./authorize-ingress.ts";
import { getConsoleOutput } from "./console-output.ts";
import { describeImages } from "./describe-images.ts";
import { describeInstances } from "./describe-instances.ts";
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
import { createTags } from "./tags.ts";
import { terminateInstances } from "./terminate-instances.ts";

const all: readonly Action[] = [
  authorizeSecurityGroupIngress,
  createSecurityGroup,
  createTags,
  deleteSecurityGroup,
  describeAvailabilityZones,
  describeImages,
  describeInstanceTypeOfferings,
  describeInstanceTypes,
  describeInstances,
  describeRegions,
  describeSecurityGroups,
  describeSubnets,
  describeVpcs,
  getConsoleOutput,
  modifyInstanceMetadataOptions,
  revokeSecurityGroupIngress,
  runInstances,
  terminateInstances,
];

/** By the name that requests pass as `Action`. */
export const actions: ReadonlyMap<string, Action> = new Map(
  all.map((action) => [action.name, action]),
);

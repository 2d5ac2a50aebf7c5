import { imagesOf, type Image } from "../catalogue/images.ts";
import { networksOf, type Networks, type Subnet, type Vpc } from "../catalogue/networks.ts";
import { regions, type RegionDescription } from "../catalogue/regions.ts";
import { fixedId } from "../catalogue/resource-id.ts";
import { Ec2Error } from "../endpoint/ec2-error.ts";
import { isAlive, type Instance } from "./instance.ts";

export interface IngressRule {
  readonly id: string;
  readonly protocol: string;
  readonly fromPort: number | undefined;
  readonly toPort: number | undefined;
  readonly source:
    | { readonly cidr: string }
    | { readonly cidrIpv6: string }
    | { readonly groupId: string };
  readonly description: string | undefined;
}

export interface SecurityGroup {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly vpcId: string;
  readonly tags: Map<string, string>;
  readonly rules: IngressRule[];
  /** When the id becomes visible, in milliseconds, like Date.now(). */
  readonly visibleAt: number;
}

interface Launched {
  /** The original request, to distinguish a repetition from a different request with the same token. */
  readonly fingerprint: string;
  readonly reservationId: string;
}

/** All resources of one account in one region. */
export class Region {
  readonly description: RegionDescription;
  readonly networks: Networks;
  readonly images: readonly Image[];
  readonly instances = new Map<string, Instance>();
  readonly groups = new Map<string, SecurityGroup>();
  readonly launches = new Map<string, Launched>();

  constructor(description: RegionDescription, addressRange: string) {
    this.description = description;
    this.networks = networksOf(description, addressRange);
    this.images = imagesOf(description.name);
    for (const vpc of this.networks.vpcs) this.#addDefaultGroup(vpc);
  }

  get name(): string {
    return this.description.name;
  }

  get defaultVpc(): Vpc | undefined {
    return this.networks.vpcs.find((vpc) => vpc.isDefault);
  }

  vpc(id: string): Vpc {
    const found = this.networks.vpcs.find((vpc) => vpc.id === id);
    if (found === undefined)
      throw new Ec2Error("InvalidVpcID.NotFound", `The vpc ID '${id}' does not exist`);
    return found;
  }

  subnet(id: string): Subnet {
    const found = this.networks.subnets.find((subnet) => subnet.id === id);
    if (found === undefined)
      throw new Ec2Error("InvalidSubnetID.NotFound", `The subnet ID '${id}' does not exist`);
    return found;
  }

  /** The group, if it is already visible (EC2's eventual consistency). */
  group(id: string): SecurityGroup {
    const found = this.groups.get(id);
    if (found === undefined || found.visibleAt > Date.now()) {
      throw new Ec2Error("InvalidGroup.NotFound", `The security group '${id}' does not exist`);
    }
    return found;
  }

  defaultGroupOf(vpcId: string): SecurityGroup {
    return [...this.groups.values()].find(
      (group) => group.vpcId === vpcId && group.name === "default",
    )!;
  }

  /** The instances that calls can see now, oldest first. Forgets terminated ones after a while, like EC2. */
  visibleInstances(now: Date, terminatedShownMs: number): readonly Instance[] {
    for (const { id, terminatedAt } of this.instances.values()) {
      if (
        terminatedAt !== undefined &&
        now.getTime() - terminatedAt.getTime() >= terminatedShownMs
      ) {
        this.instances.delete(id);
      }
    }
    return [...this.instances.values()].filter((instance) => instance.visibleAt <= Date.now());
  }

  isGroupUsed(groupId: string): boolean {
    const byInstance = [...this.instances.values()].some(
      (instance) => isAlive(instance) && instance.launch.groupIds.includes(groupId),
    );
    return (
      byInstance ||
      [...this.groups.values()].some((group) => group.id !== groupId && admits(group, groupId))
    );
  }

  #addDefaultGroup(vpc: Vpc): void {
    const id = fixedId("sg", `${vpc.id}/default`);
    const description = "default VPC security group";
    this.groups.set(id, {
      id,
      name: "default",
      description,
      vpcId: vpc.id,
      tags: new Map(),
      rules: [],
      visibleAt: 0,
    });
  }
}

/** Returns the description of an enabled region. Throws EC2's error for others. */
export function callableRegion(name: string): RegionDescription {
  const found = regions.find((region) => region.name === name);
  if (found === undefined) {
    throw new Ec2Error(
      "AuthFailure",
      `Credential should be scoped to a valid region, not '${name}'.`,
    );
  }
  if (found.refusal === "AuthFailure") {
    throw new Ec2Error(
      "AuthFailure",
      "AWS was not able to validate the provided access credentials",
    );
  }
  if (found.refusal === "OptInRequired") {
    throw new Ec2Error(
      "OptInRequired",
      "You are not subscribed to this service. Please go to http://aws.amazon.com to subscribe.",
    );
  }
  return found;
}

function admits(group: SecurityGroup, groupId: string): boolean {
  return group.rules.some(({ source }) => "groupId" in source && source.groupId === groupId);
}

import { fixedId } from "./resource-id.ts";
import type { RegionDescription } from "./regions.ts";

export interface Vpc {
  readonly id: string;
  readonly cidr: string;
  readonly isDefault: boolean;
}

export interface Subnet {
  readonly id: string;
  readonly vpcId: string;
  readonly zone: string;
  readonly cidr: string;
  readonly isDefaultForZone: boolean;
  readonly givesPublicAddresses: boolean;
}

export interface Networks {
  readonly vpcs: readonly Vpc[];
  readonly subnets: readonly Subnet[];
}

/**
 * Creates a default VPC with a subnet for each zone, and a second VPC with a public and a private subnet for `--subnet`. Both use the range of the
 * machines' driver, divided into eight parts, so that the machines' addresses lie in their subnets.
 */
export function networksOf(region: RegionDescription, range: string): Networks {
  const parts = eighths(range);
  const standard: Vpc = {
    id: fixedId("vpc", `${region.name}/default`),
    cidr: range,
    isDefault: true,
  };
  const own: Vpc = { id: fixedId("vpc", `${region.name}/own`), cidr: range, isDefault: false };
  const standardSubnets = region.zones.slice(0, 6).map((zone, index) => ({
    id: fixedId("subnet", zone),
    vpcId: standard.id,
    zone,
    cidr: parts[index]!,
    isDefaultForZone: true,
    givesPublicAddresses: true,
  }));
  const ownSubnets = ["public", "private"].map((kind, index) => ({
    id: fixedId("subnet", `${region.name}/own/${kind}`),
    vpcId: own.id,
    zone: region.zones[0]!,
    cidr: parts[6 + index]!,
    isDefaultForZone: false,
    givesPublicAddresses: kind === "public",
  }));
  if (!region.hasDefaultVpc) return { vpcs: [own], subnets: ownSubnets };
  return { vpcs: [standard, own], subnets: [...standardSubnets, ...ownSubnets] };
}

function eighths(cidr: string): readonly string[] {
  const [address, bits] = cidr.split("/") as [string, string];
  const prefix = Number(bits) + 3;
  return Array.from(
    { length: 8 },
    (_, index) => `${addressAt(address, index * 2 ** (32 - prefix))}/${prefix}`,
  );
}

/** Adds `offset` to an address: `addressAt("10.0.0.0", 257)` is `10.0.1.1`. */
export function addressAt(base: string, offset: number): string {
  const value = addressNumber(base) + offset;
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}

export function addressNumber(address: string): number {
  return address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
}

/** Returns how many machines fit. EC2 reserves five addresses of each subnet. */
export function sizeOf(cidr: string): number {
  return 2 ** (32 - Number(cidr.split("/")[1])) - 5;
}

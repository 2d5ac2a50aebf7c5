export interface InstanceType {
  readonly name: string;
  readonly vcpus: number;
  readonly memoryMiB: number;
  readonly architecture: "x86_64" | "arm64";
  readonly hypervisor: "nitro" | "xen";
}

export const instanceTypes: readonly InstanceType[] = [
  nitro("t3.micro", 2, 1),
  nitro("t3.medium", 2, 4),
  nitro("t3.large", 2, 8),
  nitro("m5.large", 2, 8),
  nitro("m5.xlarge", 4, 16),
  nitro("m5.2xlarge", 8, 32),
  nitro("m6i.large", 2, 8),
  nitro("c5.large", 2, 4),
  nitro("r5.large", 2, 16),
  { name: "m4.large", vcpus: 2, memoryMiB: 8192, architecture: "x86_64", hypervisor: "xen" },
  { name: "m6g.large", vcpus: 2, memoryMiB: 8192, architecture: "arm64", hypervisor: "nitro" },
];

/** In a region with four or more zones, the last one lacks older types, as us-west-2d does. */
export function isOffered(type: InstanceType, zone: string, zones: readonly string[]): boolean {
  const isSmallZone = zones.length >= 4 && zones.at(-1) === zone;
  return !isSmallZone || !/^[mcr][45]\./.test(type.name);
}

function nitro(name: string, vcpus: number, memoryGiB: number): InstanceType {
  return { name, vcpus, memoryMiB: memoryGiB * 1024, architecture: "x86_64", hypervisor: "nitro" };
}

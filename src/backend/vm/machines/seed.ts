import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type FirstBoot, userData } from "../../cloud-init.ts";
import { privateAddressWithBits } from "../ip-detect.ts";

/** The node's own part of the cloud-init data. */
export interface Seed {
  /** cloud-init treats machines with the same id as the same machine. */
  readonly instanceId: string;
  readonly hostname: string;
  /** The node's place in the launch order. */
  readonly place: number;
  readonly boot: FirstBoot;
}

/** Returns a node's hardware addresses. They are the same in every cluster, since no two clusters share a network. */
export const macAddresses = (place: number): { readonly outside: string; readonly inside: string } => {
  const number = place + 2;
  const end = [number >> 8, number & 255].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
  return { outside: `52:54:00:93:${end}`, inside: `52:54:00:94:${end}` };
};

/** Writes the files for cloud-init's NoCloud source. All are JSON, because every JSON text is also YAML. */
export async function writeSeed(folder: string, seed: Seed): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const metaData = { "instance-id": seed.instanceId, "local-hostname": seed.hostname };
  const files = {
    "user-data": userData(seed.boot),
    "meta-data": `${JSON.stringify(metaData, undefined, 1)}\n`,
    "network-config": `${JSON.stringify(networkConfiguration(seed.place), undefined, 1)}\n`,
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text, { mode: 0o600 });
}

/** Uses version 1, which every version of cloud-init reads. The private address never changes and has no route to anywhere else. */
export function networkConfiguration(place: number): unknown {
  const mac = macAddresses(place);
  const outside = { type: "physical", name: "eth0", mac_address: mac.outside, subnets: [{ type: "dhcp" }] };
  const subnet = { type: "static", address: privateAddressWithBits(place) };
  const inside = { type: "physical", name: "eth1", mac_address: mac.inside, subnets: [subnet] };
  return { version: 1, config: [outside, inside] };
}

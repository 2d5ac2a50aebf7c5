import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type FirstBoot, userData } from "../../cloud-init.ts";
import { privateAddressWithBits } from "../ip-detect.ts";

/** The node's own part of what cloud-init is told. */
export interface Seed {
  /** Machines of one name are one machine to cloud-init. */
  readonly instanceId: string;
  readonly hostname: string;
  /** The node's place in the launch order. */
  readonly place: number;
  readonly boot: FirstBoot;
}

/** Hardware addresses of a node: the same in every cluster, since no two clusters share a network. */
export const macAddresses = (place: number): { readonly outside: string; readonly inside: string } => {
  const number = place + 2;
  const end = [number >> 8, number & 255].map((byte) => byte.toString(16).padStart(2, "0")).join(":");
  return { outside: `52:54:00:93:${end}`, inside: `52:54:00:94:${end}` };
};

/** Writes the files of cloud-init's NoCloud source. JSON throughout: every JSON text is YAML. */
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

/** Version 1, which cloud-init of every age reads. The private address never changes, and leads nowhere else. */
export function networkConfiguration(place: number): unknown {
  const mac = macAddresses(place);
  const outside = { type: "physical", name: "eth0", mac_address: mac.outside, subnets: [{ type: "dhcp" }] };
  const subnet = { type: "static", address: privateAddressWithBits(place) };
  const inside = { type: "physical", name: "eth1", mac_address: mac.inside, subnets: [subnet] };
  return { version: 1, config: [outside, inside] };
}

import { randomInt } from "node:crypto";
import { networkInterfaces } from "node:os";
import { addressAt, addressNumber } from "../catalogue/networks.ts";
import { docker } from "./docker.ts";

export interface ContainerNetwork {
  readonly name: string;
  /** `10.99.32.0/20` */
  readonly range: string;
  /** This host's address for the machines. */
  readonly gatewayAddress: string;
}

const prefix = 20;

/**
 * Creates a bridge for this cloud, in a range that nothing on this host uses. Packets that leave it are not masqueraded, so machines can reach only
 * one another and this host.
 */
export async function createNetwork(name: string, label: string): Promise<ContainerNetwork> {
  for (let tries = 1; ; tries += 1) {
    const start = `10.${randomInt(64, 192)}.${randomInt(0, 16) * 16}.0`;
    if (isUsedHere(start)) continue;
    const range = `${start}/${prefix}`;
    const words = ["network", "create", "--driver=bridge", `--subnet=${range}`, `--label=${label}`];
    try {
      await docker(
        [...words, "--opt=com.docker.network.bridge.enable_ip_masquerade=false", name],
        undefined,
      );
      return { name, range, gatewayAddress: addressAt(start, 1) };
    } catch (error) {
      if (tries === 20 || !String(error).includes("overlap")) throw error;
    }
  }
}

function isUsedHere(start: string): boolean {
  const first = addressNumber(start);
  const end = first + 2 ** (32 - prefix);
  return Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ family, cidr }) => family === "IPv4" && cidr !== null)
    .some(({ cidr }) => {
      const [address, bits] = cidr!.split("/") as [string, string];
      const size = 2 ** (32 - Number(bits));
      const theirs = Math.floor(addressNumber(address) / size) * size;
      return theirs < end && theirs + size > first;
    });
}

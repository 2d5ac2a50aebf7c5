import { BlockList, isIPv4 } from "node:net";
import type { Environment } from "../../../system/runtime.ts";
import { checkAddress } from "./check-address.ts";

/**
 * Explains why nodes may not answer: this machine's address isn't among those let in. Returns `undefined` if that isn't
 * the reason.
 */
export async function whyUnreachableText(
  environment: Environment,
  cidrs: readonly string[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const address = await checkAddress(environment, signal).catch(() => undefined);
  if (address === undefined || isAllowedAddress(address, cidrs)) return undefined;
  return `This machine's public address is now ${address}, but the cluster allows only ${cidrs.join(", ")}.`;
}

/** Whether any of the ranges (`address/bits`, IPv4 or IPv6) holds the address. */
export function isAllowedAddress(address: string, cidrs: readonly string[]): boolean {
  const admitted = new BlockList();
  for (const cidr of cidrs) {
    const [network = "", bits = ""] = cidr.split("/");
    admitted.addSubnet(network, Number(bits), family(network));
  }
  return admitted.check(address, family(address));
}

const family = (address: string): "ipv4" | "ipv6" => (isIPv4(address) ? "ipv4" : "ipv6");

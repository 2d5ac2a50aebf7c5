import { isIPv4, isIPv6 } from "node:net";
import { shellText } from "../../../ssh/shell-text.ts";
import { readOwnText } from "../../../system/files/read-text.ts";
import nameServerFile from "./name-server.sh" with { type: "text" };

/** Linux's table. Other systems have none, and there machines get IPv6 in any case. */
const tablePath = "/proc/net/ipv6_route";
/** Where QEMU's network finds the name servers of this computer. */
const resolverPath = "/etc/resolv.conf";

/** Whether machines get IPv6: where this computer has a way out, or nodes would have no name server otherwise. */
export const usesIpv6 = async (): Promise<boolean> =>
  (await hasIpv6Route()) || (await needsIpv6NameServer());

/** What each boot of a node runs for its names. For most computers: nothing. */
export async function nameServerScripts(): Promise<readonly string[]> {
  if (!(await needsIpv6NameServer())) return [];
  return [shellText(nameServerFile, { HAS_ROUTE: (await hasIpv6Route()) ? "yes" : "no" })];
}

async function hasIpv6Route(): Promise<boolean> {
  const table = await readOwnText(tablePath).catch(() => undefined);
  return table === undefined || hasDefaultRoute(table);
}

/**
 * QEMU's network passes on what nodes ask its name server to one of this computer's of the same
 * kind of address, and DHCP tells nodes the one that has an IPv4 address.
 */
async function needsIpv6NameServer(): Promise<boolean> {
  return hasOnlyIpv6NameServers(await readOwnText(resolverPath).catch(() => ""));
}

export function hasOnlyIpv6NameServers(resolver: string): boolean {
  const servers = [...resolver.matchAll(/^nameserver[ \t]+(\S+)/gm)].map(
    ([, address = ""]) => address,
  );
  return servers.some((address) => isIPv6(address)) && !servers.some((address) => isIPv4(address));
}

/** A route that only rejects what is sent. */
const rejects = 0x200;

/**
 * Reads lines such as `0…0 00 0…0 00 fe80… 00000400 00000001 00000000 00000003 eth0`: destination,
 * bits, …, flags, device.
 */
export function hasDefaultRoute(table: string): boolean {
  return table.split("\n").some((line) => {
    const [destination = "", bits, , , , , , , flags = "", device] = line.split(/\s+/);
    const isDefault = /^0{32}$/.test(destination) && bits === "00" && device !== "lo";
    return isDefault && (Number.parseInt(flags, 16) & rejects) === 0;
  });
}

import { readOwnText } from "../../../system/files/read-text.ts";

/** Linux's table. Other systems have none, and there machines get IPv6 in any case. */
const tablePath = "/proc/net/ipv6_route";

export async function hasIpv6Route(): Promise<boolean> {
  const table = await readOwnText(tablePath).catch(() => undefined);
  return table === undefined || hasDefaultRoute(table);
}

/** A route that only rejects what is sent. */
const rejects = 0x200;

/** Reads lines such as `0…0 00 0…0 00 fe80… 00000400 00000001 00000000 00000003 eth0`: destination, bits, …, flags, device. */
export function hasDefaultRoute(table: string): boolean {
  return table.split("\n").some((line) => {
    const [destination = "", bits, , , , , , , flags = "", device] = line.split(/\s+/);
    const isDefault = /^0{32}$/.test(destination) && bits === "00" && device !== "lo";
    return isDefault && (Number.parseInt(flags, 16) & rejects) === 0;
  });
}

import type { IpPermission } from "@aws-sdk/client-ec2";

/** Returns what is wrong with an address range such as `192.0.2.0/24` or `2001:db8::1`, or `undefined`. */
export function cidrProblem(text: string): string | undefined {
  const { address, bits } = split(text);
  const longest = isIPv4(address) ? 32 : 128;
  if (!isIPv4(address) && !isIPv6(address))
    return `"${text}" is not an address range such as 192.0.2.0/24`;
  if (bits !== undefined && !(/^\d{1,3}$/.test(bits) && Number(bits) <= longest))
    return `"${text}" has a prefix length that is not between 0 and ${longest}`;
  const range = normalizeCidr(text);
  // The cloud also reads 192.0.2.7/0 as 0.0.0.0/0, since it clears the bits after the prefix.
  return range.endsWith("/0") && range !== "0.0.0.0/0" && range !== "::/0"
    ? `"${text}" contains every address: pass a longer prefix, such as /32 for one address, or 0.0.0.0/0 to admit everyone`
    : undefined;
}

/** Returns why a range can't be admitted, or `undefined`. */
export function admissionProblem(text: string): string | undefined {
  const problem = cidrProblem(text);
  if (problem !== undefined || isIPv4(split(text).address)) return problem;
  return `"${text}" is an IPv6 range, but nodes have IPv4 addresses only`;
}

/** Returns the range in the form that EC2 requires: a single address becomes a range of one. */
export function normalizeCidr(text: string): string {
  const { address, bits } = split(text);
  return `${address}/${bits === undefined ? (isIPv4(address) ? 32 : 128) : Number(bits)}`;
}

export function admissions(cidrs: readonly string[], ports: readonly number[]): IpPermission[] {
  const ranges = [...new Set(cidrs.map(normalizeCidr))];
  const version4 = ranges
    .filter((range) => isIPv4(split(range).address))
    .map((CidrIp) => ({ CidrIp }));
  const version6 = ranges
    .filter((range) => isIPv6(split(range).address))
    .map((CidrIpv6) => ({ CidrIpv6 }));
  return [...new Set(ports)].map((port) => ({
    IpProtocol: "tcp",
    FromPort: port,
    ToPort: port,
    ...(version4.length > 0 && { IpRanges: version4 }),
    ...(version6.length > 0 && { Ipv6Ranges: version6 }),
  }));
}

function split(text: string) {
  const slash = text.indexOf("/");
  return slash === -1
    ? { address: text, bits: undefined }
    : { address: text.slice(0, slash), bits: text.slice(slash + 1) };
}

// Not from node:net, because loading that module would more than double the time that a program needs to start.
const isIPv4 = (text: string): boolean =>
  /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(text);

/** Bun 1.4 parses URLs whose address ends with a single colon. */
const isIPv6 = (text: string): boolean =>
  /^[0-9a-f:.]+$/i.test(text) && !/[^:]:$/.test(text) && URL.canParse(`http://[${text}]/`);

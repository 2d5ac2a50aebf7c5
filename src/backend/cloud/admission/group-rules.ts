import type { AdmittedRange } from "../../contract.ts";
import type { IpPermission } from "@aws-sdk/client-ec2";
import { cidrProblem } from "../launch/admin-cidrs.ts";
import { isAllowedAddress } from "../launch/why-unreachable.ts";
import type { Group } from "../records/read-groups.ts";

type Rules = Pick<Group, "rules">;

/** Returns the admitted ranges, each with its ports, in the order of the rules. */
export function admittedRanges({ rules }: Rules): readonly AdmittedRange[] {
  const pairs = rules.flatMap((rule) => rangesOf(rule).map((range) => ({ range, port: portText(rule) })));
  const byRange = Map.groupBy(pairs, ({ range }) => range);
  return [...byRange].map(([range, members]) => ({ range, ports: [...new Set(members.map(({ port }) => port))] }));
}

/** Returns the single TCP ports that any range may reach. */
export function admittedPorts({ rules }: Rules): readonly number[] {
  const ports = rules
    .filter((rule) => rule.IpProtocol === "tcp" && rule.FromPort === rule.ToPort && rangesOf(rule).length > 0)
    .flatMap(({ FromPort }) => FromPort ?? []);
  return [...new Set(ports)];
}

/** Whether a rule admits exactly this range to exactly this TCP port: the cloud refuses a second such rule. */
export function isPortAdmitted(group: Rules, range: string, port: number): boolean {
  return rulesFor(group, range).some(
    ({ IpProtocol, FromPort, ToPort }) => IpProtocol === "tcp" && FromPort === port && ToPort === port,
  );
}

/** Returns all rules that admit exactly this range, without the other sources of these rules. */
export function rulesFor({ rules }: Rules, range: string): IpPermission[] {
  return rules.flatMap(({ IpProtocol, FromPort, ToPort, IpRanges = [], Ipv6Ranges = [] }) => {
    const rule = { IpProtocol, FromPort, ToPort };
    const version4 = IpRanges.filter(({ CidrIp }) => isSameRange(CidrIp, range)).map(({ CidrIp }) => ({ CidrIp }));
    const version6 = Ipv6Ranges.filter(({ CidrIpv6 }) => isSameRange(CidrIpv6, range)).map(({ CidrIpv6 }) => ({
      CidrIpv6,
    }));
    return [
      ...(version4.length > 0 ? [{ ...rule, IpRanges: version4 }] : []),
      ...(version6.length > 0 ? [{ ...rule, Ipv6Ranges: version6 }] : []),
    ];
  });
}

/** Leaves out what is not a range. */
function rangesOf({ IpRanges = [], Ipv6Ranges = [] }: IpPermission): readonly string[] {
  const found = [...IpRanges.map(({ CidrIp }) => CidrIp), ...Ipv6Ranges.map(({ CidrIpv6 }) => CidrIpv6)];
  return found.filter((range) => range !== undefined).filter((range) => cidrProblem(range) === undefined);
}

function portText({ IpProtocol, FromPort, ToPort }: IpPermission): string {
  if (IpProtocol === "-1" || FromPort === undefined || ToPort === undefined) return "all";
  const ports = FromPort === ToPort ? `${FromPort}` : `${FromPort}-${ToPort}`;
  return IpProtocol === "tcp" ? ports : `${ports}/${IpProtocol}`;
}

/** The cloud clears the bits after the prefix, and shortens IPv6 addresses, so the texts may differ. */
function isSameRange(found: string | undefined, range: string): boolean {
  if (found === undefined || cidrProblem(found) !== undefined) return false;
  const [address = "", bits] = range.split("/");
  return found.split("/")[1] === bits && isAllowedAddress(address, [found]);
}

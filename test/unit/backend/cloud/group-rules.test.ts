import type { IpPermission } from "@aws-sdk/client-ec2";
import { expect, test } from "bun:test";
import {
  admittedPorts,
  admittedRanges,
  isPortAdmitted,
  rulesFor,
} from "../../../../src/backend/cloud/admission.ts";

const tcp = (port: number, rest: Partial<IpPermission>): IpPermission => ({
  IpProtocol: "tcp",
  FromPort: port,
  ToPort: port,
  ...rest,
});

/** As the cloud answers: ranges with equal ports share a rule. */
const group = {
  rules: [
    { IpProtocol: "-1", UserIdGroupPairs: [{ GroupId: "sg-0123456789abcdef0" }] },
    tcp(22, {
      IpRanges: [
        { CidrIp: "192.0.2.0/24", Description: "the office" },
        { CidrIp: "198.51.100.7/32" },
      ],
      Ipv6Ranges: [{ CidrIpv6: "2001:db8::/32" }],
    }),
    tcp(80, { IpRanges: [{ CidrIp: "192.0.2.0/24" }] }),
    { IpProtocol: "tcp", FromPort: 8000, ToPort: 8100, IpRanges: [{ CidrIp: "198.51.100.7/32" }] },
    { IpProtocol: "udp", FromPort: 53, ToPort: 53, IpRanges: [{ CidrIp: "198.51.100.7/32" }] },
    { IpProtocol: "-1", IpRanges: [{ CidrIp: "203.0.113.1/32" }, { CidrIp: "\u001b[31m" }] },
  ],
};

test("ranges are listed with their ports, without what is not a range", () => {
  expect(admittedRanges(group)).toEqual([
    { range: "192.0.2.0/24", ports: ["22", "80"] },
    { range: "198.51.100.7/32", ports: ["22", "8000-8100", "53/udp"] },
    { range: "2001:db8::/32", ports: ["22"] },
    { range: "203.0.113.1/32", ports: ["all"] },
  ]);
});

test.each<[IpPermission]>([
  [{ IpProtocol: "-1", FromPort: 0, ToPort: 65_535 }],
  [{ IpProtocol: "tcp" }],
  [{ IpProtocol: "tcp", FromPort: 22 }],
  [{ IpProtocol: "tcp", ToPort: 22 }],
])("a rule %j is listed as one for all ports", (rule) => {
  const range = "192.0.2.0/24";
  expect(admittedRanges({ rules: [{ ...rule, IpRanges: [{ CidrIp: range }] }] })).toEqual([
    { range, ports: ["all"] },
  ]);
});

test("a new range gets the single TCP ports of the others", () => {
  expect(admittedPorts(group)).toEqual([22, 80]);
  expect(admittedPorts({ rules: group.rules.slice(0, 1) })).toEqual([]);
  const fromGroup = tcp(5432, { UserIdGroupPairs: [{ GroupId: "sg-0123456789abcdef0" }] });
  expect(admittedPorts({ rules: [fromGroup] })).toEqual([]);
});

test.each([
  [
    "192.0.2.0/24",
    [
      tcp(22, { IpRanges: [{ CidrIp: "192.0.2.0/24" }] }),
      tcp(80, { IpRanges: [{ CidrIp: "192.0.2.0/24" }] }),
    ],
  ],
  [
    "192.0.2.9/24",
    [
      tcp(22, { IpRanges: [{ CidrIp: "192.0.2.0/24" }] }),
      tcp(80, { IpRanges: [{ CidrIp: "192.0.2.0/24" }] }),
    ],
  ],
  ["2001:0db8:0::/32", [tcp(22, { Ipv6Ranges: [{ CidrIpv6: "2001:db8::/32" }] })]],
  ["203.0.113.1/32", [{ IpProtocol: "-1", IpRanges: [{ CidrIp: "203.0.113.1/32" }] }]],
  ["192.0.2.0/25", []],
  ["192.0.2.9/32", []],
  ["::/24", []],
])("the rules for %p are found, without other sources", (range, rules) => {
  expect(rulesFor(group, range)).toEqual(rules);
});

test("a port is admitted only by a rule of its own, as the cloud compares rules", () => {
  expect(isPortAdmitted(group, "192.0.2.0/24", 80)).toBe(true);
  expect(isPortAdmitted(group, "198.51.100.7/32", 80)).toBe(false);
  expect(isPortAdmitted(group, "198.51.100.7/32", 8000)).toBe(false);
  expect(isPortAdmitted(group, "203.0.113.1/32", 22)).toBe(false);
});

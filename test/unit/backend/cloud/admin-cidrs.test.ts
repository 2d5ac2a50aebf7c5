import { expect, test } from "bun:test";
import {
  admissions,
  cidrProblem,
  normalizeCidr,
} from "../../../../src/backend/cloud/admin-cidrs.ts";

test.each(["192.0.2.7", "192.0.2.7/32", "0.0.0.0/0", "2001:db8::/32", "2001:db8::1/128", "::/0"])(
  "%p is a range",
  (text) => {
    expect(cidrProblem(text)).toBeUndefined();
  },
);

test.each([
  ["", '"" is not an address range such as 192.0.2.0/24'],
  ["192.0.2", '"192.0.2" is not an address range such as 192.0.2.0/24'],
  ["192.0.2.0/24/8", '"192.0.2.0/24/8" has a prefix length that is not between 0 and 32'],
  ["192.0.2.0/33", '"192.0.2.0/33" has a prefix length that is not between 0 and 32'],
  ["192.0.2.0/", '"192.0.2.0/" has a prefix length that is not between 0 and 32'],
  ["192.0.2.0/+8", '"192.0.2.0/+8" has a prefix length that is not between 0 and 32'],
  ["2001:db8::/129", '"2001:db8::/129" has a prefix length that is not between 0 and 128'],
  ["fe80::1%eth0", '"fe80::1%eth0" is not an address range such as 192.0.2.0/24'],
  ["example.com/8", '"example.com/8" is not an address range such as 192.0.2.0/24'],
])("%p is refused", (text, problem) => {
  expect(cidrProblem(text)).toBe(problem);
});

test.each([
  ["192.0.2.7", "192.0.2.7/32"],
  ["192.0.2.0/024", "192.0.2.0/24"],
  ["2001:db8::1", "2001:db8::1/128"],
])("%p goes to the cloud as %p", (text, normal) => {
  expect(normalizeCidr(text)).toBe(normal);
});

test("admits each range to each port once", () => {
  expect(admissions(["192.0.2.7", "192.0.2.7/32", "2001:db8::1"], [22, 80, 22])).toEqual([
    {
      IpProtocol: "tcp",
      FromPort: 22,
      ToPort: 22,
      IpRanges: [{ CidrIp: "192.0.2.7/32" }],
      Ipv6Ranges: [{ CidrIpv6: "2001:db8::1/128" }],
    },
    {
      IpProtocol: "tcp",
      FromPort: 80,
      ToPort: 80,
      IpRanges: [{ CidrIp: "192.0.2.7/32" }],
      Ipv6Ranges: [{ CidrIpv6: "2001:db8::1/128" }],
    },
  ]);
});

test.each([
  ["192.0.2.7", { IpRanges: [{ CidrIp: "192.0.2.7/32" }] }],
  ["2001:db8::1", { Ipv6Ranges: [{ CidrIpv6: "2001:db8::1/128" }] }],
])("a rule for %p alone names no range of the other version", (range, ranges) => {
  expect(admissions([range], [22])).toEqual([
    { IpProtocol: "tcp", FromPort: 22, ToPort: 22, ...ranges },
  ]);
});

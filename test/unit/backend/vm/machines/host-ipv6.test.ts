import { expect, test } from "bun:test";
import {
  hasDefaultRoute,
  hasOnlyIpv6NameServers,
} from "../../../../../src/backend/vm/machines/host-ipv6.ts";

const zeros = "0".repeat(32);

const router = "fd000000000000000000000000000001";

test.each([
  [
    "a default route",
    `${zeros} 00 ${zeros} 00 ${router} 00000400 00000003 00000000 00000003     eth0`,
    true,
  ],
  [
    "the route of loopback that rejects",
    `${zeros} 00 ${zeros} 00 ${zeros} ffffffff 00000001 00000000 00200200       lo`,
    false,
  ],
  [
    "an unreachable default",
    `${zeros} 00 ${zeros} 00 ${zeros} 00000400 00000001 00000000 00000201     eth0`,
    false,
  ],
  [
    "only its own networks",
    `fe800000000000000000000000000000 40 ${zeros} 00 ${zeros} 00000100 00000001 00000000 00000001     eth0`,
    false,
  ],
  ["nothing", "", false],
] as const)("whether this computer has IPv6 is read from its routes: %s", (_, table, has) => {
  expect(
    hasDefaultRoute(
      `fd000000000000000000000000000000 40 ${zeros} 00 ${zeros} 00000100 00000001 00000000 00000001     eth0\n${table}\n`,
    ),
  ).toBe(has);
});

test.each([
  ["nameserver ::1\n", true],
  ["# comment\nsearch example.com\nnameserver\tfe80::1%eth0\nnameserver 2001:db8::53", true],
  ["nameserver ::1\nnameserver 192.0.2.1\n", false],
  ["nameserver 127.0.0.53\noptions edns0\n", false],
  ["#nameserver ::1\n", false],
  ["nameserver example.com\n", false],
  ["", false],
])("a computer with %j has only name servers with IPv6 addresses: %p", (resolver, expected) => {
  expect(hasOnlyIpv6NameServers(resolver)).toBe(expected);
});

import { expect, test } from "bun:test";
import { isAllowedAddress } from "../../../../../src/backend/cloud/launch/look-at-machines.ts";

test.each([
  ["192.0.2.7", ["192.0.2.0/24"], true],
  ["192.0.3.7", ["192.0.2.0/24"], false],
  ["192.0.3.7", ["198.51.100.1/32", "0.0.0.0/0"], true],
  ["2001:db8::5", ["192.0.2.0/24", "2001:db8::/32"], true],
  ["2001:db9::5", ["2001:db8::/32"], false],
])("whether %p is let in by %p", (address, cidrs, admitted) => {
  expect(isAllowedAddress(address, cidrs)).toBe(admitted);
});

import { expect, test } from "bun:test";
import { readServerOffer } from "../../../../src/ssh/connection/connection-errors.ts";

test.each([
  [
    "KEX method",
    "a-b@c.d,ext-info-s,kex-strict-s-v00@openssh.com",
    { part: "key exchange", names: ["a-b@c.d"] },
  ],
  [
    "Host key format",
    "rsa-sha2-512,ssh-rsa",
    { part: "host key", names: ["rsa-sha2-512", "ssh-rsa"] },
  ],
  ["S->C cipher", "", { part: "cipher", names: [] }],
  ["C->S MAC", "x", { part: "MAC", names: ["x"] }],
])("%s %s", (name, list, offer) => {
  expect(readServerOffer(`Handshake: (remote) ${name}: ${list}`)).toEqual(offer as never);
});

test.each([
  "Handshake: (local) KEX method: a",
  "Handshake: (remote) C->S compression: none",
  "Outbound: Sending KEXINIT",
])("%s is no offer", (line) => {
  expect(readServerOffer(line)).toBeUndefined();
});

test("what no algorithm is called, and more than a few, are left out", () => {
  const odd = ["\u001B[2J", "a b", "x".repeat(65), "é", "good-1"];
  expect(readServerOffer(`Handshake: (remote) KEX method: ${odd.join(",")}`)?.names).toEqual([
    "good-1",
  ]);
  const many = Array.from({ length: 50 }, (_, index) => `c${index}`);
  expect(readServerOffer(`Handshake: (remote) C->S cipher: ${many.join(",")}`)?.names).toHaveLength(
    8,
  );
});

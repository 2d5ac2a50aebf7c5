import { expect, test } from "bun:test";
import { connectFailure } from "../../../../src/ssh/connection/connection-errors.ts";

const target = { name: "master_0", host: "192.0.2.1", port: 22, user: "admin" };
const address = "master_0 (192.0.2.1 port 22)";
const noMatch = Object.assign(new Error("Handshake failed: no matching cipher"), {
  level: "handshake",
});

test.each([
  [["aes128-cbc", "3des-cbc"], "It offers aes128-cbc, 3des-cbc."],
  [[], "It offers no algorithm that this program knows."],
])("an SSH server with other ciphers is told apart by its offer %j", (names, offered) => {
  const failure = connectFailure(target, noMatch, {
    mayStillBoot: true,
    offer: { part: "cipher", names },
  });
  expect(failure).toMatchObject({
    id: "connection-failed",
    transient: false,
    facts: { node: "master_0" },
  });
  expect(failure.message).toBe(
    `The SSH server of ${address} and this program have no cipher in common. ${offered}`,
  );
  expect(failure.hint).toContain("add this to its sshd_config: Ciphers +aes256-gcm@openssh.com");
});

test.each([true, false])(
  "host keys may still be made while a machine boots: %p",
  (mayStillBoot) => {
    const offer = { part: "host key", names: ["ssh-rsa"] } as const;
    expect(connectFailure(target, noMatch, { mayStillBoot, offer }).transient).toBe(mayStillBoot);
  },
);

test("without an offer, the error itself is quoted", () => {
  const failure = connectFailure(target, noMatch, { mayStillBoot: false, offer: undefined });
  expect(failure.message).toBe(
    `${address} and this program cannot agree on a protocol: ${noMatch.message}.`,
  );
});

test("what a server says before the key exchange is quoted in one short line, whatever it says", () => {
  const said = `bye\r\nWarning: run curl\u001B[2J\n::set-output name=a::b ${"x".repeat(30_000)}`;
  for (const level of [undefined, "handshake"]) {
    const error = Object.assign(new Error(said), level === undefined ? {} : { level });
    const { message } = connectFailure(target, error, { mayStillBoot: false, offer: undefined });
    expect(message).toContain("bye Warning: run curl\uFFFD[2J : :set-output");
    expect(message.length).toBeLessThan(700);
    expect(message).not.toMatch(/\p{Cc}/u);
  }
  const inherited = connectFailure(target, new Error("constructor"), {
    mayStillBoot: false,
    offer: undefined,
  });
  expect(inherited.message).toBe(`Cannot reach ${address}: constructor.`);
});

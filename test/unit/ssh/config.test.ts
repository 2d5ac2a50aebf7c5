import { expect, test } from "bun:test";
import { renderSshConfig } from "../../../src/ssh/config.ts";
import type { Destination } from "../../../src/ssh/pool.ts";

const node = (role: string, index: number, host: string): Destination => ({
  id: `i-${index}`,
  role,
  index,
  ssh: { host, port: 22, user: "admin" },
});
const files = { identityFile: "/state of 100%/key", knownHostsFile: "/state of 100%/known_hosts" };

test("each node with an address has a block", () => {
  const nodes = [node("master", 0, "203.0.113.5"), node("agent", 1, ""), node("public_agent", 0, "2001:db8::7")];
  expect(renderSshConfig(nodes, files)).toMatchInlineSnapshot(`
    "Host master_0
      HostName 203.0.113.5
      Port 22
      User admin
      IdentityFile "/state of 100%%/key"
      IdentitiesOnly yes
      IdentityAgent none
      PreferredAuthentications publickey
      HostKeyAlgorithms ssh-ed25519
      KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,diffie-hellman-group-exchange-sha256
      StrictHostKeyChecking yes
      UserKnownHostsFile "/state of 100%%/known_hosts"
      GlobalKnownHostsFile /dev/null
      CheckHostIP no
      UpdateHostKeys no
      ConnectTimeout 15
      ServerAliveInterval 10
      LogLevel ERROR

    Host public_agent_0
      HostName 2001:db8::7
      Port 22
      User admin
      IdentityFile "/state of 100%%/key"
      IdentitiesOnly yes
      IdentityAgent none
      PreferredAuthentications publickey
      HostKeyAlgorithms ssh-ed25519
      KexAlgorithms curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,diffie-hellman-group-exchange-sha256
      StrictHostKeyChecking yes
      UserKnownHostsFile "/state of 100%%/known_hosts"
      GlobalKnownHostsFile /dev/null
      CheckHostIP no
      UpdateHostKeys no
      ConnectTimeout 15
      ServerAliveInterval 10
      LogLevel ERROR
    "
  `);
});

test.each(['/a"b', "/a\\b", "/a${HOME}", "/a\nb"])(
  "the path %j, which ssh can't be given, is refused",
  (identityFile) => {
    expect(() => renderSshConfig([node("master", 0, "203.0.113.5")], { ...files, identityFile })).toThrow(
      expect.objectContaining({ id: "machine-not-set-up" }),
    );
  },
);

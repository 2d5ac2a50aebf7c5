/** Real SSH servers on loopback with settings that this program doesn't support. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { failureOf } from "../../support/failure-of.ts";
import { opensshLack, startOpensshServer } from "../../support/openssh-server.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { connectTo, signal } from "../../support/ssh-options.ts";

describe.skipIf(opensshLack !== undefined)(
  `real servers that this program can't speak with (${opensshLack ?? "here"})`,
  () => {
    // Shows R129.
    test.each([
      [
        "Ciphers chacha20-poly1305@openssh.com",
        ["cipher", "chacha20-poly1305@openssh.com"],
        "Ciphers +aes256",
      ],
      [
        "KexAlgorithms sntrup761x25519-sha512@openssh.com",
        ["key exchange", "sntrup761x25519-sha512@openssh.com"],
        "KexAlgorithms +curve25519",
      ],
      ["MACs umac-64@openssh.com", ["MAC", "umac-64@openssh.com"], "MACs +hmac-sha2-256"],
    ])("%s: the error names what the server offers, at once", async (settings, parts, hint) => {
      await using server = await startOpensshServer([
        settings,
        ...(settings.startsWith("MACs") ? ["Ciphers aes128-ctr"] : []),
      ]);
      const error = await failureOf(connectTo(server, { authenticationMayComeLater: true }));
      const facts = { node: "master_0", port: server.port };
      expect(error).toMatchObject({ id: "connection-failed", transient: false, facts });
      for (const part of parts) expect(error.message).toContain(` ${part}`);
      expect(error.hint).toContain(hint);
    });

    test("only an RSA host key: its types are named; the first boot may still create a suitable one", async () => {
      await using folder = await scratchFolder();
      const key = join(folder.path, "rsa");
      await Bun.$`ssh-keygen -q -t rsa -N "" -f ${key}`;
      await using server = await startOpensshServer([
        `HostKey ${key}`,
        "HostKeyAlgorithms rsa-sha2-512,rsa-sha2-256",
      ]);
      const error = await failureOf(connectTo(server, { authenticationMayComeLater: true }));
      expect(error).toMatchObject({ id: "connection-failed", transient: true });
      for (const part of ["host key", "rsa-sha2-512, rsa-sha2-256"])
        expect(error.message).toContain(` ${part}`);
      expect(error.hint).toContain("ssh_host_ed25519_key");
      expect(await failureOf(connectTo(server, {}))).toMatchObject({ transient: false });
    });

    // Shows R129.
    test("a banner of 100 KB is too long, and reported; a usual one is accepted", async () => {
      await using folder = await scratchFolder();
      const banner = join(folder.path, "banner");
      await Bun.write(banner, "All that you do is logged.\n".repeat(4_000));
      await using server = await startOpensshServer([`Banner ${banner}`]);
      const error = await failureOf(connectTo(server, { authenticationMayComeLater: true }));
      expect(error).toMatchObject({ id: "connection-failed", transient: false });
      expect(error.message).toContain("banner");
      await Bun.write(banner, "All that you do is logged.\n".repeat(1_000));
      await using connection = await connectTo(server, {});
      expect((await connection.run({ argv: ["echo", "in"] }, signal)).stdout).toBe("in\n");
    });
  },
);

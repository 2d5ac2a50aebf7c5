/**
 * With TLS off, somebody who reads the network traffic between this machine and the nodes learns no password and no
 * token.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { buildArtifact } from "./support/artifacts.ts";
import { startTestCloud } from "./support/test-cloud.ts";
import type { TestCloud } from "./support/test-cloud.ts";

const lack =
  process.getuid?.() === 0
    ? undefined
    : "skipped: listening to all of this computer's networks needs root";
if (lack !== undefined) console.warn(lack);

const password = "pass-0123456789-not-to-be-seen";
const shared: { cloud?: TestCloud } = {};
const cloud = (): TestCloud => shared.cloud!;

beforeAll(async () => {
  if (lack === undefined) shared.cloud = await startTestCloud("container");
});

afterAll(async () => {
  await shared.cloud?.[Symbol.asyncDispose]();
});

/** Notes what comes from these addresses or goes there, on every network of this machine. */
async function listen(
  file: string,
  addresses: readonly string[],
): Promise<{ heard(): Promise<string> }> {
  const program = `
import socket, sys
addresses = {socket.inet_aton(address) for address in sys.argv[2:]}
wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 * 1024 * 1024)
print("listening", flush=True)
with open(sys.argv[1], "wb", buffering=0) as out:
    while True:
        frame = wire.recv(65535)
        if frame[12:14] == b"\\x08\\x00" and addresses & {frame[26:30], frame[30:34]}:
            out.write(frame + b"\\n")
`;
  const child = Bun.spawn(["python3", "-c", program, file, ...addresses], {
    stdout: "pipe",
    stderr: "inherit",
  });
  await child.stdout.getReader().read();
  return {
    heard: async () => {
      child.kill();
      await child.exited;
      return Buffer.from(await Bun.file(file).bytes()).toString("latin1");
    },
  };
}

// Shows R137.
test.skipIf(lack !== undefined)(
  "without TLS neither the superuser's password nor a token crosses the network",
  async () => {
    const folder = cloud().folder;
    const hash = (
      await Bun.$`openssl passwd -6 -stdin < ${Buffer.from(`${password}\n`)}`.text()
    ).trim();
    await Bun.write(
      join(folder, "extra.yaml"),
      `superuser_password_hash: ${hash}\nlicense_key_contents: sample\n`,
    );
    const words =
      "create --variant enterprise --linux-distribution debian-12 --agents 1 --public-agents 0".split(
        " ",
      );
    const more = ["--security-mode", "disabled", "--extra-config", join(folder, "extra.yaml")];
    const created = await cloud().run([
      ...words,
      ...more,
      await buildArtifact("enterprise", folder),
    ]);
    expect(created.status, created.stderr).toBe(0);

    const { nodes } = await cloud().inspect("default");
    const addresses = nodes.flatMap(({ publicAddress, privateAddress }) => [
      publicAddress,
      privateAddress,
    ]);
    // The platform's own files, which the nodes fetch during the installation, speak of logins too.
    for (const { reference } of nodes) {
      const until = "until [ -e /var/lib/cluster-e2e/install.status ]; do sleep 0.2; done";
      const installed = await cloud().run(["run", "--no-test-env", "--node", reference, until]);
      expect(installed.status, installed.stderr).toBe(0);
    }
    const wire = await listen(join(folder, "wire"), addresses);
    const wait = ["wait", "--timeout", "5m", "-vvv", "--superuser-password", "-"];
    const refused = await cloud().run([...wait], { stdin: `${password}x\n` });
    expect(refused.stderr).toContain("[login-refused]");
    const waited = await cloud().run([...wait], { stdin: `${password}\n` });
    expect(waited.status, waited.stderr).toBe(0);
    const heard = await wire.heard();
    // What was asked, and that the listener hears it; then what must not be heard. The page itself speaks of tokens.
    const told = [
      /GET \/ HTTP\/1\.1/,
      /SSH-2\.0-/,
      new RegExp(password),
      /POST \/acs/,
      /"token":/,
      /\r\nauthorization: *token=/i,
    ];
    expect(told.map((text) => text.test(heard))).toEqual([true, true, false, false, false, false]);
    for (const { stderr } of [refused, waited]) {
      expect(stderr).not.toContain(password);
      expect(stderr).not.toContain("token=");
    }
  },
);

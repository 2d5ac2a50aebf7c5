/** A server whose IPv6 address is announced, where the network swallows what is sent to it, is reached over IPv4. */
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** In a network of its own, packets to 2001:db8::2 end in a device that drops them. */
const swallow = `
set -e
ip link set lo up
ip link add e2e0 type veth peer name e2e1
ip addr add 2001:db8::1/64 dev e2e0 nodad
ip link set e2e0 up
ip link set e2e1 up
ip -6 neigh add 2001:db8::2 lladdr 02:00:00:00:00:02 dev e2e0
mount --bind "$1" /etc/hosts
shift
exec "$@"
`;
const unshared = ["unshare", "--user", "--map-root-user", "--net", "--mount"] as const;
const makeKey =
  "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out certificate.pem -days 2 -subj /CN=files.example -addext subjectAltName=DNS:files.example";
const lack = findLack();

test.skipIf(lack !== undefined)(
  `downloads take IPv4 then, but for a proxy (${lack ?? "here"})`,
  async () => {
    await using folder = await scratchFolder();
    const [hosts, key, certificate] = ["hosts", "key.pem", "certificate.pem"].map((name) =>
      join(folder.path, name),
    ) as [string, string, string];
    await writeFile(hosts, "2001:db8::2 files.example\n127.0.0.1 files.example localhost\n");
    await Bun.$`${{ raw: makeKey }}`.cwd(folder.path).quiet();
    const program = join(import.meta.dir, "swallowed-ipv6-program.ts");
    const words = [hosts, process.execPath, program, key, certificate];
    const child = Bun.spawn([...unshared, "sh", "-c", swallow, "sh", ...words], {
      env: { PATH: process.env["PATH"], NODE_EXTRA_CA_CERTS: certificate },
      stdout: "pipe",
      stderr: "inherit",
    });
    expect(JSON.parse(await new Response(child.stdout).text())).toEqual({
      direct: ["the file", "the file"],
      proxied: "through the proxy",
      areNamed: true,
    });
  },
);

function findLack(): string | undefined {
  const missing = ["unshare", "ip", "openssl"].find((name) => Bun.which(name) === null);
  if (missing !== undefined) return `there is no ${missing}`;
  const made = Bun.spawnSync([...unshared, "sh", "-c", swallow, "sh", "/etc/hosts", "true"]);
  return made.success ? undefined : "no networks of one's own here";
}

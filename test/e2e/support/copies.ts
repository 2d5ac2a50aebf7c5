/** What copies of one template must not have in common, and what must not open them. */
import { expect } from "bun:test";
import { readFile, readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { TestVms } from "./test-vms.ts";

/** Prints a line for each thing that tells machines apart: its name, and what this machine has. */
const identity = `
say() { printf "%s %s\\n" "$1" "$(sh -c "$2" 2>/dev/null | tr -s '[:space:]' ' ')"; }
say machine-id 'cat /etc/machine-id'
say boot-id 'cat /proc/sys/kernel/random/boot_id'
say hostname hostname
say hostname-file 'cat /etc/hostname'
say host-key 'cut -d " " -f 2 /etc/ssh/ssh_host_ed25519_key.pub'
say host-keys 'cat /etc/ssh/ssh_host_*_key'
say outside-mac 'cat /sys/class/net/eth0/address'
say inside-mac 'cat /sys/class/net/eth1/address'
say inside-address 'ip -4 -o address show dev eth1 | tr -s " " | cut -d " " -f 4'
say link-address 'ip -6 -o address show dev eth1 scope link | tr -s " " | cut -d " " -f 4'
say instance 'readlink /var/lib/cloud/instance'
say instance-id 'cat /var/lib/cloud/data/instance-id'
say instances 'ls /var/lib/cloud/instances'
say random 'head -c 16 /dev/urandom | base64'
say uuid 'cat /proc/sys/kernel/random/uuid'
say lease-id 'grep -h duid /var/lib/dhcp/*.leases | head -n 1; grep -h CLIENTID /run/systemd/netif/leases/*'
say journal-hosts 'journalctl --quiet -F _HOSTNAME'
say journal-machines 'journalctl --quiet -F _MACHINE_ID'
say journal-boots 'journalctl --quiet -F _BOOT_ID'
say clock 'date +%s.%N'
`;

/** What services have logged. The kernel's log, from which journald reads at its start, still has the template's boot. */
const userland = "_TRANSPORT=journal + _TRANSPORT=syslog + _TRANSPORT=stdout";
// Not the unit of that name, which ends on each copy.
const leftOf = "cluster-e2e-template([^.]|$)|52:54:00:9[34]:fd:ea";
const places =
  "/etc /home /root /var/lib/cloud/data /var/lib/cloud/instance /var/lib/dhcp /run/cloud-init /run/systemd/netif";

/** What a command prints on each node, by the node's name. */
export async function onNodes(
  vms: TestVms,
  id: string,
  command: string,
): Promise<Readonly<Record<string, string>>> {
  const ran = await vms.run([
    "run",
    "-c",
    id,
    "--no-test-env",
    "--node",
    "all",
    "--output",
    "json",
    command,
  ]);
  expect(ran.status, ran.stderr).toBe(0);
  const { nodes } = JSON.parse(ran.stdout) as {
    nodes: readonly { readonly reference: string; readonly stdout: string }[];
  };
  return Object.fromEntries(nodes.map(({ reference, stdout }) => [reference, stdout.trim()]));
}

/** All nodes of the cluster are copies of one template. */
export async function expectDifferentCopies(vms: TestVms, id: string): Promise<void> {
  const asked = Date.now() / 1000;
  const texts = Object.values(
    await onNodes(vms, id, `sudo sh -c '${identity.replaceAll("'", `'\\''`)}'`),
  );
  const nodes = texts.map((text) => new Map(text.split("\n").map((line) => splitAtSpace(line))));
  expect(nodes.length).toBeGreaterThan(1);
  for (const name of nodes[0]!.keys()) {
    const values = nodes.map((node) => node.get(name));
    expect(values, name).not.toContain("");
    expect(new Set(values).size, `${name}: ${values.join(", ")}`).toBe(nodes.length);
  }
  for (const node of nodes) {
    expect(Number(node.get("clock"))).toBeWithin(asked - 10, Date.now() / 1000 + 10);
    expect(node.get("journal-boots")).toBe(node.get("boot-id")!.replaceAll("-", ""));
    expect(node.get("journal-machines")).toBe(node.get("machine-id"));
    expect(node.get("journal-hosts")).toBe(node.get("hostname"));
    expect(node.get("hostname-file")).toBe(node.get("hostname"));
    expect(node.get("instances")).toBe(node.get("instance-id"));
  }
  const keys = Object.values(
    await onNodes(
      vms,
      id,
      "sudo sh -c 'cat /home/*/.ssh/authorized_keys /root/.ssh/authorized_keys'",
    ),
  );
  // The cluster's own, and no other.
  expect(new Set(keys).size).toBe(1);
  expect(keys[0]!.split("\n").filter((line) => line.includes("ssh-")).length).toBe(1);
  const search = `grep -rlIE '${leftOf}' ${places}; journalctl ${userland} | grep -E '${leftOf}'; true`;
  const left = await onNodes(vms, id, search);
  expect(Object.values(left)).toEqual(nodes.map(() => ""));
}

/** Restores the snapshot, which has just been restored, once more: no node makes a random number that one has made before. */
export async function expectOtherUuids(vms: TestVms, id: string, snapshot: string): Promise<void> {
  const uuids = async () => {
    const texts = await onNodes(vms, id, "cat $(yes /proc/sys/kernel/random/uuid | head -n 300)");
    return Object.values(texts).flatMap((text) => text.split("\n"));
  };
  const before = await uuids();
  expect(await vms.run(["snapshot", "restore", snapshot, "-c", id])).toMatchObject({ status: 0 });
  expect(new Set([...before, ...(await uuids())]).size).toBe(2 * before.length);
}

const splitAtSpace = (line: string): readonly [string, string] => {
  const end = line.indexOf(" ");
  return end === -1 ? [line, ""] : [line.slice(0, end), line.slice(end + 1).trim()];
};

const keyBegin = "-----BEGIN OPENSSH PRIVATE KEY-----";
const keyEnd = "-----END OPENSSH PRIVATE KEY-----";

/** Every private key in the files of the templates: what the memory and the disk of one still hold is anybody's who can read it. */
async function keysInTemplates(vms: TestVms): Promise<readonly string[]> {
  const names = await readdir(vms.templatesFolder, { recursive: true, withFileTypes: true });
  const keys = new Set<string>();
  for (const file of names.filter((each) => each.isFile())) {
    const bytes = await readFile(join(file.parentPath, file.name));
    for (let at = bytes.indexOf(keyBegin); at !== -1; at = bytes.indexOf(keyBegin, at + 1)) {
      const end = bytes.indexOf(keyEnd, at);
      if (end !== -1 && end - at < 10_000)
        keys.add(`${bytes.toString("latin1", at, end)}${keyEnd}\n`);
    }
  }
  return [...keys];
}

/** Whether the first node of each cluster reaches a port of this computer's loopback. */
export async function expectOffline(
  vms: TestVms,
  { online, offline }: Readonly<Record<"online" | "offline", string>>,
  port: number,
): Promise<void> {
  const attempt = `timeout 30 bash -c 'exec 3<>/dev/tcp/10.0.2.2/${port}' 2>/dev/null && echo reached || echo not`;
  const reach = async (cluster: string) =>
    (await vms.run(["run", "-c", cluster, "--no-test-env", attempt])).stdout;
  expect([await reach(online), await reach(offline)]).toEqual(["reached\n", "not\n"]);
}

/** Tries, on every node, all keys that an attacker could have who has the templates and another cluster of copies. */
export async function expectClosedCopies(vms: TestVms, id: string, other: string): Promise<void> {
  const own = await vms.inspect(id);
  const shown = (await vms.run(["inspect", "-c", id, "--output", "ssh-config"])).stdout;
  const foreign = await readFile((await vms.inspect(other)).sshKey.path, "utf8");
  const [key, config] = [join(vms.folder, "foreign-key"), join(vms.folder, "foreign.ssh")];
  for (const text of [foreign, ...(await keysInTemplates(vms))])
    for (const { reference } of own.nodes)
      for (const user of ["e2e", "root"]) {
        await Bun.write(key, text);
        await Bun.$`chmod 600 ${key}`;
        await Bun.write(config, shown.replaceAll(own.sshKey.path, key));
        const ran = await Bun.$`ssh -F ${config} -o BatchMode=yes -l ${user} ${reference} true`
          .quiet()
          .nothrow();
        expect({ status: ran.exitCode, stderr: ran.stderr.toString() }).toEqual({
          status: 255,
          stderr: expect.stringMatching(/Permission denied|invalid format|error in libcrypto/),
        });
      }
  for (const { reference } of own.nodes) await sendToAgent(await vms.machineFolder(id, reference));
  await Bun.sleep(2_000);
  expect(await onNodes(vms, id, "ls /var/tmp/owned /run/cluster-e2e 2>/dev/null; true")).toEqual(
    Object.fromEntries(own.nodes.map(({ reference }) => [reference, ""])),
  );
}

/** Sends a script, as the program does once to make a copy a node. */
async function sendToAgent(folder: string): Promise<void> {
  const script = Buffer.from("touch /var/tmp/owned").toString("base64");
  const link = `/tmp/cluster-e2e-agent-${process.pid}`;
  await Bun.$`ln -sfn ${folder} ${link}`;
  const socket = connect(join(link, "identity.sock"));
  await new Promise<void>((resolve, reject) => {
    socket.once("error", reject);
    socket.write(`${script}\n`, () => resolve());
  });
  await Bun.sleep(200);
  socket.destroy();
  await Bun.$`rm ${link}`;
}

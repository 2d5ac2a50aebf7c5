/** The identifiers that a copy of a template must not share with it, in a folder that stands for the machine's root. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, test } from "bun:test";
import renewNamesFile from "../../../../../src/backend/vm/templates/renew-names.sh" with { type: "text" };
import { shellText } from "../../../../../src/ssh/shell-text.ts";
import { isAccessible } from "../../../../../src/system/files/private-file.ts";
import { scratchFolder } from "../../../../support/scratch-folder.ts";

const uuid = "0f6a2c3d-1b2c-4d5e-8f90-a1b2c3d4e5f6";

/** A system with these files, after the script. Resolves with what they hold; undefined: it is gone. */
async function renewed(files: Readonly<Record<string, string>>) {
  await using root = await scratchFolder();
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(root.path, name)), { recursive: true });
    await writeFile(join(root.path, name), text);
  }
  const ran = Bun.spawn(["sh", "-c", shellText(renewNamesFile, { ROOT: root.path, UUID: uuid })], {
    stderr: "pipe",
  });
  expect({ stderr: await new Response(ran.stderr).text(), status: await ran.exited }).toEqual({
    stderr: "",
    status: 0,
  });
  const read = async (name: string) => {
    const path = join(root.path, name);
    return [name, (await isAccessible(path)) ? await readFile(path, "latin1") : undefined] as const;
  };
  return Object.fromEntries(await Promise.all(Object.keys(files).map(read)));
}

const removed = [
  "var/lib/dhcp/dhclient.eth0.leases",
  "var/lib/dhclient/dhclient.leases",
  "var/lib/dhcpcd/duid",
  "var/lib/dhcpcd/secret",
  "var/lib/dhcpcd/eth0.lease",
  "etc/dhcpcd.duid",
  "etc/dhcpcd.secret",
  "var/lib/NetworkManager/secret_key",
  "var/lib/systemd/network/x",
  "var/lib/systemd/credential.secret",
  "boot/efi/loader/random-seed",
];

test("what a system makes again by itself is removed from a copy", async () => {
  const kept = { "var/lib/dhcpcd.conf": "x", "etc/nvme/discovery.conf": "x" };
  const found = await renewed({
    ...Object.fromEntries(removed.map((name) => [name, "old"])),
    ...kept,
  });
  expect(found).toEqual({
    ...Object.fromEntries(removed.map((name) => [name, undefined])),
    ...kept,
  });
});

test("names of iSCSI and NVMe hosts keep their form and are other ones, and so is the host id", async () => {
  const comment = "## DO NOT EDIT OR REMOVE THIS FILE!\n";
  const { "etc/hostid": hostId, ...found } = await renewed({
    "etc/iscsi/initiatorname.iscsi": `${comment}InitiatorName=iqn.1993-08.org.debian:01:2d1e37c4f5\n`,
    "etc/nvme/hostnqn": "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555\n",
    "etc/nvme/hostid": "11111111-2222-3333-4444-555555555555\n",
    "etc/hostid": "same",
  });
  expect(found).toEqual({
    "etc/iscsi/initiatorname.iscsi": `${comment}InitiatorName=iqn.1993-08.org.debian:01:0f6a2c3d1b2c\n`,
    "etc/nvme/hostnqn": `nqn.2014-08.org.nvmexpress:uuid:${uuid}\n`,
    "etc/nvme/hostid": `${uuid}\n`,
  });
  expect([hostId?.length, hostId === "same"]).toEqual([4, false]);
});

test("a system that has none of them gets none", async () => {
  expect(await renewed({ "etc/hostname": "a" })).toEqual({ "etc/hostname": "a" });
});

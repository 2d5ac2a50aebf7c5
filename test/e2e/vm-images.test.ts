/**
 * Images of Debian 13 as people have them, with GRUB and everything that usually runs: each becomes a cluster that uses its whole disk, and that boots
 * again. They run with CLUSTER_E2E_VM_IMAGES=all only, because each takes about four minutes with a translated processor, and that for ARM twenty.
 */
import { expect, test } from "bun:test";
import { onNodes } from "./support/copies.ts";
import { armProgram, buildUsualImage, startTestVms } from "./support/test-vms.ts";

const active = (...units: readonly string[]): string =>
  `systemctl is-active ${units.join(" ")} | sort -u`;
const root = "findmnt -n -o FSTYPE / && echo $(($(df --output=size -m / | tail -n 1) / 1024))";
const isChosen = process.env["CLUSTER_E2E_VM_IMAGES"] === "all";

test.skipIf(!isChosen).each([
  [
    "netplan",
    {
      agents: 1,
      runs: active("systemd-networkd", "systemd-resolved", "apparmor"),
      shown: "active",
      fileSystem: "ext4",
    },
  ],
  [
    "btrfs",
    {
      agents: 0,
      // Its processes have other names.
      runs: "ls /var/lib/dhcpcd/*.lease >/dev/null && echo dhcpcd",
      shown: "dhcpcd",
      fileSystem: "btrfs",
    },
  ],
  ["lvm", { agents: 0, runs: active("NetworkManager"), shown: "active", fileSystem: "xfs" }],
  ["arm64", { agents: 0, runs: "uname -m", shown: "aarch64", fileSystem: "ext4" }],
] as const)(
  "%s: nodes have names, a network and the whole disk, and boot again (with CLUSTER_E2E_VM_IMAGES=all)",
  async (kind, { agents, runs, shown, fileSystem }) => {
    await using vms = await startTestVms(kind === "arm64" ? armProgram : undefined);
    const done = async (...words: readonly string[]): Promise<void> => {
      const ran = await vms.run(words);
      expect(ran.status, ran.stderr).toBe(0);
    };
    const id = vms.id(kind);
    const nodes = ["--masters", "1", "--agents", String(agents), "--public-agents", "0"];
    const machines = [
      "--memory",
      "768",
      "--cpus",
      "1",
      "--disk-size",
      "8g",
      "--image",
      await buildUsualImage(kind),
    ];
    await done("create", "--wait", "-c", id, ...nodes, ...machines, "example:bare");
    const names = { master_0: "master-0", ...(agents > 0 && { agent_0: "agent-0" }) };
    expect(await onNodes(vms, id, "hostname")).toEqual(names);
    expect(await onNodes(vms, id, runs)).toMatchObject({ master_0: shown });
    expect(await onNodes(vms, id, root)).toMatchObject({ master_0: `${fileSystem}\n7` });
    await done("node", "restart", "-c", id, "master_0");
    await done("wait", "-c", id);
    expect(await onNodes(vms, id, "hostname")).toEqual(names);
    await done("destroy", "-c", id);
  },
);

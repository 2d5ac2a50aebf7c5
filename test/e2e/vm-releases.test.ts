/**
 * Copies of templates on Debian 13, whose network systemd-networkd configures, with its cloud-init and kernel; with CLUSTER_E2E_VM_RELEASES=all also on
 * Debian 11, whose kernel doesn't notice by itself that a machine is a copy.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { expectDifferentCopies, onNodes } from "./support/copies.ts";
import { writeEmptyPlatform } from "./support/empty-platform.ts";
import { buildVmImage, startTestVms } from "./support/test-vms.ts";
import type { TestVms } from "./support/test-vms.ts";

const releases = [
  ["13", "--networkd"],
  ["11", "--debian-11"],
] as const;
const chosen = process.env["CLUSTER_E2E_VM_RELEASES"] === "all" ? releases : releases.slice(0, 1);

const state: { vms?: TestVms; platform?: string } = {};
const vms = (): TestVms => state.vms!;

beforeAll(async () => {
  state.vms = await startTestVms();
  state.platform = await writeEmptyPlatform(vms().folder);
});

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
});

const peer = `ping -c 1 -W 20 "$([ "$(hostname)" = master-0 ] && echo agent-0 || echo master-0)" >/dev/null && hostname`;
const hostnames = { master_0: "master-0", agent_0: "agent-0" };

test.each(chosen)(
  "on Debian %s, copies are machines of their own, and boot again",
  async (release, kind) => {
    const id = vms().id(`debian-${release}`);
    const machines =
      "--masters 1 --agents 1 --public-agents 0 --memory 768 --cpus 1 --disk-size 4g --image".split(
        " ",
      );
    const words = [
      "create",
      "--wait",
      "-c",
      id,
      ...machines,
      await buildVmImage(kind),
      state.platform!,
    ];
    const created = await vms().run(words);
    expect(created.status, created.stderr).toBe(0);
    expect(created.stderr).toContain("Make a template of the machines: done");
    const version = await onNodes(vms(), id, "cut -d . -f 1 /etc/debian_version");
    expect(version).toEqual({ master_0: release, agent_0: release });
    expect(await onNodes(vms(), id, peer)).toEqual(hostnames);
    await expectDifferentCopies(vms(), id);
    expect(await onNodes(vms(), id, "sudo dmesg | grep -c 'transmit queue' || true")).toEqual({
      master_0: "0",
      agent_0: "0",
    });
    const restarted = await vms().run(["node", "restart", "-c", id, "agent_0"]);
    expect(restarted.status, restarted.stderr).toBe(0);
    const waited = await vms().run(["wait", "-c", id]);
    expect(waited.status, waited.stderr).toBe(0);
    expect(await onNodes(vms(), id, peer)).toEqual(hostnames);
    expect((await vms().run(["destroy", "-c", id])).status).toBe(0);
  },
  2_200_000,
);

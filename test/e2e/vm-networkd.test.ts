/** Templates of an image that systemd-networkd configures, with the cloud-init and the kernel of Debian 13. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { buildVmImage, startTestVms } from "./support/test-vms.ts";
import type { TestVms } from "./support/test-vms.ts";

const state: { vms?: TestVms; image?: string } = {};
const vms = (): TestVms => state.vms!;
const id = (): string => vms().id("networkd");

beforeAll(async () => {
  state.vms = await startTestVms();
  state.image = await buildVmImage("--networkd");
}, 900_000);

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
}, 120_000);

/** Installs nothing, and is ready at once. */
async function writePlatform(): Promise<string> {
  const folder = join(vms().folder, "nothing");
  await mkdir(folder);
  await writeFile(join(folder, "platform.yaml"), 'name: nothing\nversion: "1.0"\n');
  for (const name of ["install", "check"]) {
    await writeFile(join(folder, name), "#!/bin/sh\n");
    await chmod(join(folder, name), 0o755);
  }
  return folder;
}

/** What a command prints on each node, by the node's name. */
async function onNodes(command: string): Promise<Readonly<Record<string, string>>> {
  const ran = await vms().run(["run", "-c", id(), "--no-test-env", "--node", "all", "--output", "json", command]);
  expect(ran.status, ran.stderr).toBe(0);
  const { nodes } = JSON.parse(ran.stdout) as {
    nodes: readonly { readonly reference: string; readonly stdout: string }[];
  };
  return Object.fromEntries(nodes.map(({ reference, stdout }) => [reference, stdout.trim()]));
}

const peer = `ping -c 1 -W 20 "$([ "$(hostname)" = master-0 ] && echo agent-0 || echo master-0)" >/dev/null && hostname`;
const hostnames = { master_0: "master-0", agent_0: "agent-0" };

test("the nodes are copies of a template, each a machine of its own", async () => {
  const machines = "--masters 1 --agents 1 --public-agents 0 --memory 768 --cpus 1 --disk-size 4g".split(" ");
  const words = ["create", "--wait", "-c", id(), ...machines, "--image", state.image!, await writePlatform()];
  const created = await vms().run(words);
  expect(created.status, created.stderr).toBe(0);
  expect(created.stderr).toContain("Make a template of the machines: done");
  expect(await onNodes(peer)).toEqual(hostnames);
  for (const file of ["/etc/machine-id", "/proc/sys/kernel/random/boot_id", "/etc/ssh/ssh_host_ed25519_key.pub"])
    expect(new Set(Object.values(await onNodes(`cat ${file}`))).size, file).toBe(2);
  expect(await onNodes("sudo dmesg | grep -c 'transmit queue' || true")).toEqual({ master_0: "0", agent_0: "0" });
}, 1_600_000);

test("a copy shuts down by itself, and boots again", async () => {
  const restarted = await vms().run(["node", "restart", "-c", id(), "agent_0"]);
  expect(restarted.status, restarted.stderr).toBe(0);
  const waited = await vms().run(["wait", "-c", id()]);
  expect(waited.status, waited.stderr).toBe(0);
  expect(await onNodes(peer)).toEqual(hostnames);
  expect((await vms().run(["destroy", "-c", id()])).status).toBe(0);
}, 600_000);

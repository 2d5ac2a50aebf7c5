/**
 * Containers on a typical machine: cgroups 2, AppArmor, privileged. The machine is a virtual machine built for this
 * test.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { executablePath } from "./support/executable.ts";
import { bareNodeImage } from "./support/container-engine.ts";
import { buildVmImage, startTestVms } from "./support/test-vms.ts";
import type { TestVms } from "./support/test-vms.ts";
import { serveOnLoopback } from "../support/loopback-server.ts";

const state: { vms?: TestVms; image?: string } = {};
const vms = (): TestVms => state.vms!;
const id = (): string => vms().id("host");

/** An artifact that installs nothing: translated code is slow, and only the machines are looked at. */
const idle = `#!/bin/bash
# variant: oss
case $1 in
  --version) echo '{"variant": "oss", "version": "1"}' ;;
  --genconf) mkdir genconf/serve && echo 'exit 0' >genconf/serve/cluster_install.sh ;;
esac
`;

/** Where an engine may not give a container all rights. */
const unprivileged = `#!/bin/sh
for word in "$@"; do [ "$word" != --privileged ] || { echo "docker: not permitted" >&2; exit 125; }; done
exec /usr/bin/docker "$@"
`;

/** A line of shell on the machine, by its user or by root. */
const by = (user: "e2e" | "root", line: string) =>
  vms().run([
    "run",
    "-c",
    id(),
    "--no-test-env",
    "sudo",
    "-u",
    user,
    "-H",
    "sh",
    "-c",
    `cd; CI=true; export CI; ${line}`,
  ]);

const create = (name: string, path = "") =>
  by(
    "e2e",
    `${path} cluster-container create --variant oss --agents 0 --public-agents 0 --memory 300m --cpus 1.5 ` +
      `--custom-volume ~/shared:/shared --node-image ${bareNodeImage} -c ${name} /opt/machine/idle.sh`,
  );
const onNode = (name: string, line: string) =>
  by("e2e", `cluster-container run -c ${name} --no-test-env '${line}'`);

/** Not over SSH: where a processor is translated, deciphering its 100 MB takes minutes. */
async function bringProgram(): Promise<void> {
  const program = Bun.file(executablePath("cluster-container"));
  const server = serveOnLoopback(() => new Response(program), { host: "10.0.2.2" });
  const path = "/usr/local/bin/cluster-container";
  const brought = await by(
    "root",
    `curl -fsS -o ${path} http://10.0.2.2:${server.port}/ && chmod +x ${path}`,
  );
  await server.stop(true);
  expect(brought.status, brought.stderr).toBe(0);
}

beforeAll(async () => {
  state.image = await buildVmImage("--docker");
  state.vms = await startTestVms();
  const machine = join(vms().folder, "machine");
  await Bun.write(join(machine, "idle.sh"), idle);
  await Bun.write(join(machine, "bin", "docker"), unprivileged);
  // Not a copy, which keeps less of the code that QEMU translates: nested programs take half as long again there.
  const words =
    "create --fresh-boot --variant oss --agents 0 --public-agents 0 --memory 3g --cpus 2 --disk-size 8g".split(
      " ",
    );
  const created = await vms().run([
    ...words,
    "--copy-to-master",
    `${machine}:/opt/machine`,
    "--image",
    state.image,
    "-c",
    id(),
    join(machine, "idle.sh"),
  ]);
  expect(created.status, created.stderr).toBe(0);
  await by("root", "chmod +x /opt/machine/bin/docker; sudo -u e2e mkdir ~e2e/shared");
  await bringProgram();
}, 1_500_000);

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
});

test("the machine is what most people have: cgroups 2 and AppArmor", async () => {
  const { stdout } = await by(
    "root",
    "docker info --format '{{.CgroupVersion}} {{json .SecurityOptions}}'",
  );
  expect(stdout).toMatch(/^2 .*name=apparmor/);
});

test("who may not use Docker is told how to come to that", async () => {
  const doctor = await by("e2e", "cluster-container doctor");
  expect(doctor.status).toBe(1);
  expect(doctor.stdout.replaceAll(/\s+/g, " ")).toContain(
    "You may not use Docker on this computer",
  );
  expect(doctor.stdout).toContain("sudo usermod -aG docker $USER");
  const created = await create("refused");
  expect(created.status).toBe(5);
  expect(created.stderr).toContain("[machine-not-set-up]");
});

test("who may use it has nothing in the way", async () => {
  expect((await by("root", "usermod -aG docker e2e")).status).toBe(0);
  const doctor = await by("e2e", "cluster-container doctor");
  expect(doctor.stdout).not.toContain("✖");
  expect(doctor.stdout).toMatch(/cgroups +Version 2/);
  expect(doctor.status).toBe(0);
});

test("a node is privileged; its limits and volume are in force, and the machine's own kernel settings stay", async () => {
  await by("root", "sysctl -w kernel.pid_max=100000");
  const created = await create("whole");
  expect(created, created.stderr).toMatchObject({ status: 0, stdout: "whole\n" });
  const facts = "{{.HostConfig.Privileged}} {{.AppArmorProfile}} {{.HostConfig.CgroupnsMode}}";
  const inspected = await by("e2e", `docker inspect --format '${facts}' $(docker ps --quiet)`);
  expect(inspected.stdout).toBe("true unconfined private\n");
  const limits = await onNode(
    "whole",
    "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max; echo here >/shared/note",
  );
  expect(limits.stdout, limits.stderr).toBe("314572800\n150000 100000\n");
  expect((await by("e2e", "cat shared/note")).stdout).toBe("here\n");
  const restarted = await onNode("whole", "systemctl restart systemd-sysctl");
  expect(restarted.status, restarted.stderr).toBe(0);
  expect((await by("root", "sysctl -n kernel.pid_max")).stdout).toBe("100000\n");
});

test("a killed node is told of, and destroy leaves nothing", async () => {
  await by("e2e", "docker kill $(docker ps --quiet)");
  const waited = await by("e2e", "cluster-container wait -c whole");
  expect(waited.status).toBe(1);
  expect(waited.stderr).toContain("status 137");
  expect((await by("e2e", "cluster-container destroy -c whole")).stdout).toBe("whole\n");
  expect(
    (await by("e2e", "docker ps --all --quiet; docker network ls --quiet --filter type=custom"))
      .stdout,
  ).toBe("");
});

test("where containers may not be privileged, named capabilities will do, in spite of AppArmor", async () => {
  // There it is remembered what this Docker gives.
  await by("e2e", "rm -r ~/.local/state; docker info >/dev/null");
  const created = await create("named", "PATH=/opt/machine/bin:$PATH");
  expect(created, created.stderr).toMatchObject({ status: 0, stdout: "named\n" });
  const inspected = await by(
    "e2e",
    "docker inspect --format '{{.HostConfig.Privileged}} {{.AppArmorProfile}}' $(docker ps --quiet)",
  );
  expect(inspected.stdout).toBe("false unconfined\n");
  expect(
    (await onNode("named", "cat /sys/fs/cgroup/memory.max; mkdir /sys/fs/cgroup/own")).status,
  ).toBe(0);
});

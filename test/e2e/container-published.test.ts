/**
 * A Docker that runs in a virtual machine, as on macOS: containers' addresses are unreachable, so their ports are
 * published on the loopback interface. Here it is the real Docker, which only claims to be Docker Desktop.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { shareBackend } from "./support/shared-backend.ts";
import {
  docker,
  nodeImage,
  pathWithEngine,
  startTestContainers,
} from "./support/test-containers.ts";

const { backend: containers, artifact } = shareBackend(startTestContainers);

/** The real docker, the answer of whose `info` is changed by a sed script. */
const pathWithInfo = (sed: string): Promise<string> =>
  pathWithEngine(
    containers().folder,
    "docker",
    (real) => `if [ "$1" = info ]; then ${real} "$@" | sed '${sed}'; exit; fi`,
  );

const pathWithDesktop = (): Promise<string> =>
  pathWithInfo('s/"OperatingSystem":"[^"]*"/"OperatingSystem":"Docker Desktop"/');

test("nodes are reached at ports of 127.0.0.1", async () => {
  const environment = { PATH: await pathWithDesktop() };
  const id = containers().id("published");
  const run = (words: readonly string[]) => containers().run(words, { environment });
  const words = "create --variant oss --public-agents 0 --wait --timeout 3m --node-image".split(
    " ",
  );
  expect((await run(["doctor"])).stdout).toContain("nodes are reached at ports of 127.0.0.1");
  const created = await run([...words, nodeImage, "-c", id, artifact()]);
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${id}\n`,
  });
  const cluster = await containers().inspect(id);
  const publishedPort = (await docker(["port", cluster.nodes[0]!.id, "80/tcp"])).split(":").at(-1);
  expect(cluster.webUi).toBe(`http://127.0.0.1:${publishedPort}/`);
  expect((await fetch(cluster.webUi)).status).toBe(200);
  expect(cluster.nodes[0]!.publicAddress).toBeUndefined();
  expect((await run(["run", "-c", id, "srun", "-N1", "hostname"])).stdout).toBe("agent-0\n");
  const config = join(containers().folder, "cluster.ssh");
  await Bun.write(config, (await run(["inspect", "-c", id, "--output", "ssh-config"])).stdout);
  expect(await Bun.$`ssh -F ${config} agent_0 hostname`.text()).toBe("agent-0\n");
  expect((await run(["destroy", "-c", id])).status).toBe(0);
  expect(await containers().things(id)).toEqual([]);
}, 200_000);

// Shows R126.
test("other ports after a restore and a restart lead to the pinned keys, and to no others", async () => {
  const environment = { PATH: await pathWithDesktop() };
  const platform = join(containers().folder, "platform");
  await mkdir(platform);
  await writeFile(join(platform, "platform.yaml"), 'name: nothing\nversion: "1.0"\n');
  for (const name of ["install", "check"])
    await writeFile(join(platform, name), "#!/bin/sh\n", { mode: 0o755 });
  const id = containers().id("ports");
  const run = (line: string) => containers().run([...line.split(" "), "-c", id], { environment });
  const counts = "--masters 1 --agents 0 --public-agents 0";
  const created = await run(`create --wait ${counts} --node-image ${nodeImage} ${platform}`);
  expect(created.status, created.stderr).toBe(0);
  const onNode = (line: string) =>
    containers().run(["run", "-c", id, "--no-test-env", "--node", "master_0", line], {
      environment,
    });
  expect((await run("snapshot create installed")).status).toBe(0);
  for (const line of ["snapshot restore installed", "node restart --force all"]) {
    expect(await run(line)).toMatchObject({ status: 0 });
    expect(await onNode("hostname")).toMatchObject({ status: 0, stdout: "master-0\n" });
  }
  const key = "/etc/ssh/ssh_host_ed25519_key";
  expect((await onNode(`rm ${key}* && ssh-keygen -q -t ed25519 -N '' -f ${key}`)).status).toBe(0);
  const refused = await run("node restart --force all");
  expect(refused).toMatchObject({
    status: 1,
    stderr: expect.stringContaining("[host-key-changed]"),
  });
  expect((await onNode("hostname")).status).toBe(255);
  expect((await run("destroy --yes")).status).toBe(0);
}, 120_000);

test("a Docker without root is refused plainly", async () => {
  const environment = { PATH: await pathWithInfo('s/"SecurityOptions":\\[/&"name=rootless",/') };
  const words = [
    "create",
    "--variant",
    "oss",
    "--node-image",
    nodeImage,
    "-c",
    containers().id("rootless"),
  ];
  const refused = await containers().run([...words, artifact()], { environment });
  expect({ status: refused.status, stdout: refused.stdout }).toEqual({ status: 5, stdout: "" });
  expect(refused.stderr).toContain("Docker runs rootless here");
  const doctor = await containers().run(["doctor"], { environment });
  expect(doctor.status).toBe(1);
  expect(doctor.stdout).toMatch(/✖ node addresses +Docker runs rootless here/);
});

/** Platforms on virtual machines that are copies of one template: the enterprise variant with TLS, a license and the superuser's login, and two examples. */
import { beforeAll, expect, test } from "bun:test";
import { runEnterpriseFlow } from "./support/enterprise-flow.ts";
import { installsOnNodes } from "./support/installs-on-nodes.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { buildVmImage, startTestVms } from "./support/test-vms.ts";

const { backend: vms, artifact } = shareBackend(startTestVms, "enterprise");
const state: { image?: string } = {};
const machines = () => [
  "--memory",
  "768",
  "--cpus",
  "1",
  "--disk-size",
  "4g",
  "--image",
  state.image!,
];

beforeAll(async () => {
  state.image = await buildVmImage();
});

test("create --wait ends with a platform that has TLS and a login, and destroy with nothing", async () => {
  const id = vms().id("enterprise");
  await runEnterpriseFlow({
    id,
    folder: vms().folder,
    artifact: artifact(),
    // Jobs on agents are in vm-flow; another machine would take minutes where its processor is translated.
    agents: 0,
    machineArguments: machines(),
    run: (words) => vms().run(words),
  });
  // A single machine needs no private network.
  expect((await vms().machines(id)).size).toBe(1);
  expect((await vms().run(["destroy", "-c", id])).status).toBe(0);
  expect((await vms().machines(id)).size).toBe(0);
}, 1_800_000);

// Few machines, since translated ones are slow; examples.test.ts has more, as containers.
test.each([
  ["slurm", ["--agents", "1"], "./slurm-test", []],
  [
    "etcd",
    ["--masters", "1"],
    "./etcd-test",
    ["1 of 1 members answer, and one of them is the leader"],
  ],
])(
  "%s is created from nothing but the program and an image with its packages, and its test passes",
  async (name, counts, words, shown) => {
    const id = vms().id(name);
    const created = await vms().run([
      "create",
      "--wait",
      "-c",
      id,
      ...counts,
      ...machines(),
      `example:${name}`,
    ]);
    expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
      status: 0,
      stdout: `${id}\n`,
    });
    expect(installsOnNodes(created.stderr)).toEqual([]);
    expect((await vms().run(["templates", "list"])).stdout.trim().split("\n").length).toBe(2);
    const ran = await vms().run(["run", "-c", id, words]);
    expect(ran.status, ran.stdout + ran.stderr).toBe(0);
    for (const each of shown) expect(ran.stdout).toContain(each);
    expect((await vms().run(["destroy", "-c", id])).status).toBe(0);
  },
);

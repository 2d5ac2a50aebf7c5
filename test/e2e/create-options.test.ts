/** The effects of the options of create on real machines. */
import { beforeAll, expect, test } from "bun:test";
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import { imagesOf } from "../local-cloud/catalogue/images.ts";
import { fixedId } from "../local-cloud/catalogue/resource-id.ts";
import { serveArtifact } from "./support/artifact-server.ts";
import { shareBackend } from "./support/shared-backend.ts";
import { startTestCloud } from "./support/test-cloud.ts";

const { backend: cloud, artifact } = shareBackend(async () => startTestCloud("container"));
const state: { sha256?: string } = {};
const inFolder = (name: string): string => join(cloud().folder, name);
/** The public subnet of the network that isn't the default one. */
const subnet = fixedId("subnet", "us-west-2/own/public");

beforeAll(async () => {
  state.sha256 = new Bun.CryptoHasher("sha256")
    .update(await Bun.file(artifact()).bytes())
    .digest("hex");
  // The artifact refuses this at once, where a test is only about what comes before.
  await Bun.write(inFolder("refused.yaml"), "resolvers: none of these\n");
});

const createWords = (id: string, more: readonly string[]): readonly string[] => [
  ...`create -c ${id} --variant oss --linux-distribution debian-12 --public-agents 0`.split(" "),
  ...more,
];

async function write(path: string, text: string, mode: number): Promise<void> {
  await Bun.write(inFolder(path), text);
  await chmod(inFolder(path), mode);
}

interface Machine {
  readonly state: string;
  readonly imageId: string;
  readonly instanceType: string;
  readonly subnetId: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly volumeTags: Readonly<Record<string, string>>;
}

async function machinesOf(id: string): Promise<readonly Machine[]> {
  const machines = (await cloud().control("instances")) as readonly Machine[];
  return machines.filter(
    ({ state: now, tags }) => now === "running" && tags["cluster-e2e:cluster-id"] === id,
  );
}

test("one cluster with all of them, ready when create --wait returns", async () => {
  await write("copied/bin/tool", "#!/bin/sh\necho tool\n", 0o750);
  await write("copied/notes.txt", "notes\n", 0o604);
  await write("single", "single\n", 0o400);
  await write("genconf/sub/folder/data.txt", "data\n", 0o640);
  await write(
    "genconf/ip-detect",
    "#!/bin/sh\ntouch /run/own-ip-detect\nhostname -I | cut -d ' ' -f 1\n",
    0o644,
  );
  await Bun.$`ssh-keygen -q -t ed25519 -N "" -f ${inFolder("own_key")}`.quiet();
  await using server = await serveArtifact(artifact(), "127.0.0.1");
  const image = imagesOf("us-west-2").find(({ name }) => name === "debian-12-amd64-20250316-2053");
  const created = await cloud().run(
    createWords("default", [
      ...`--wait --timeout 8m --instance-type m5.xlarge --image ${image!.id} --ssh-user admin`.split(
        " ",
      ),
      ...`--custom-tag team:storage:eu --custom-tag purpose: --subnet ${subnet}`.split(" "),
      ...`--admin-cidr 127.0.0.0/8 --admin-cidr 10.1.2.3/32 --artifact-sha256 ${state.sha256}`.split(
        " ",
      ),
      ...`--copy-to-master ${inFolder("copied")}:/opt/copied`.split(" "),
      ...`--copy-to-master ${inFolder("single")}:/etc/single.d/`.split(" "),
      ...`--genconf-dir ${inFolder("genconf")} --ssh-key ${inFolder("own_key")}`.split(" "),
      `${server.url}?X-Signature=topsecret`,
    ]),
  );
  expect(created).toMatchObject({ status: 0, stdout: "default\n" });
  expect(created.stderr).toContain("is ready");
  expect(created.stderr).not.toContain("topsecret");
  // The nodes can't reach this loopback address: it came here once, and went from here to one node.
  expect(server.requests).toEqual([
    { from: "127.0.0.1", range: "bytes=0-16383" },
    { from: "127.0.0.1", range: undefined },
  ]);
});

// Shows R27, R45.
test("instances and volumes are of the image, type, subnet and tags that were asked for", async () => {
  const machines = await machinesOf("default");
  const image = imagesOf("us-west-2").find(({ name }) => name === "debian-12-amd64-20250316-2053");
  expect(machines).toHaveLength(2);
  for (const machine of machines) {
    expect(machine).toMatchObject({
      imageId: image!.id,
      instanceType: "m5.xlarge",
      subnetId: subnet,
    });
    expect(machine.tags).toMatchObject({ team: "storage:eu", purpose: "" });
    expect(machine.volumeTags).toMatchObject({ team: "storage:eu", purpose: "" });
  }
});

test("the security group admits the ranges that were asked for, and no others", async () => {
  const groups = (await cloud().control("groups")) as readonly {
    readonly rules: readonly unknown[];
  }[];
  expect(groups).toHaveLength(1);
  const ranges = new Set(JSON.stringify(groups[0]!.rules).match(/[\d.]+\/\d+/g));
  expect([...ranges].toSorted()).toEqual(["10.1.2.3/32", "127.0.0.0/8"]);
});

// Shows R51.
test("copied files and folders stand on the master with their modes, root's, and on no agent", async () => {
  const line =
    "cd / && stat -c '%a %U:%G %n' opt/copied/bin/tool opt/copied/notes.txt etc/single.d/single && /opt/copied/bin/tool";
  expect((await cloud().run(["run", line])).stdout.split("\n")).toEqual([
    "750 root:root opt/copied/bin/tool",
    "604 root:root opt/copied/notes.txt",
    "400 root:root etc/single.d/single",
    "tool",
    "",
  ]);
  const onAgent = await cloud().run([
    "run",
    "--no-test-env",
    "--node",
    "agent_0",
    "ls",
    "/opt/copied",
  ]);
  expect(onAgent.status).toBe(2);
});

// Shows R49.
test("the genconf folder has its sub-folders, and its ip-detect was run on every node", async () => {
  const genconf = "/var/lib/cluster-e2e/installer/genconf";
  expect((await cloud().run(["run", `cat ${genconf}/sub/folder/data.txt`])).stdout).toBe("data\n");
  for (const node of ["master_0", "agent_0"]) {
    expect(
      await cloud().run(["run", "--no-test-env", "--node", node, "ls", "/run/own-ip-detect"]),
    ).toMatchObject({
      status: 0,
    });
  }
});

test("the user's own key opens the nodes", async () => {
  const { nodes } = await cloud().inspect("default");
  const rules = [
    "-o",
    "StrictHostKeyChecking=no",
    "-o",
    "UserKnownHostsFile=/dev/null",
    "-o",
    "IdentitiesOnly=yes",
  ];
  const login =
    await Bun.$`ssh -F none -q -i ${inFolder("own_key")} ${rules} admin@${nodes[1]!.publicAddress} id -un`
      .nothrow()
      .text();
  expect(login).toBe("admin\n");
});

test("an artifact that the nodes can reach is fetched by one of them, and --keep-on-failure leaves the machines", async () => {
  await using server = await serveArtifact(artifact(), cloud().gatewayAddress);
  const extra = [
    "--extra-config",
    inFolder("refused.yaml"),
    "--keep-on-failure",
    "--artifact-sha256",
    state.sha256!,
  ];
  const failed = await cloud().run(createWords("kept", [...extra, server.url]));
  expect(failed.stderr).toContain("resolvers: ");
  expect(failed.stderr).toMatch(
    /Kept as requested: machines i-[0-9a-f]+, i-[0-9a-f]+\. They terminate automatically at /,
  );
  expect(failed).toMatchObject({ status: 1, stdout: "" });
  const { nodes } = await cloud().inspect("kept");
  expect(nodes).toHaveLength(2);
  expect(
    server.requests.filter(({ range }) => range === undefined).map(({ from }) => from),
  ).toEqual([nodes.find(({ reference }) => reference === "master_0")!.privateAddress]);
  const sum = await cloud().run([
    "run",
    "-c",
    "kept",
    "--no-test-env",
    "sudo sha256sum /var/lib/cluster-e2e/installer/artifact.sh",
  ]);
  expect(sum.stdout.split(" ")[0]).toBe(state.sha256);
});

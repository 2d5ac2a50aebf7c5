/** Container machines of a local cloud that runs in a separate process, as other processes use it. */
import { expect, test } from "bun:test";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { EC2Client, GetConsoleOutputCommand, RunInstancesCommand } from "@aws-sdk/client-ec2";
import { generateKeyPair } from "../../../src/ssh/keys.ts";
import type { InstanceView } from "../../local-cloud/control/views.ts";
import { debianImage, eventually, launchOf } from "../../local-cloud/support/sdk.ts";

interface Announcement {
  readonly endpoint: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly controlToken: string;
  readonly region: string;
  readonly checkAddressUrl: string;
}

const image = "localhost/cluster-e2e-machine:debian-12";
const main = join(import.meta.dir, "..", "..", "local-cloud", "main.ts");
const canBoot = succeeds(["docker", "image", "inspect", image]);
if (!canBoot)
  console.warn(
    `skipped: container machines (needs docker and ${image}; scripts/setup makes both ready)`,
  );

function succeeds(words: readonly string[]): boolean {
  try {
    return Bun.spawnSync([...words], { stdout: "ignore", stderr: "ignore" }).success;
  } catch {
    return false;
  }
}

async function startProcess(directory: string) {
  const child = Bun.spawn(
    [process.execPath, main, "--driver", "container", "--directory", directory],
    {
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  const { value } = await child.stdout.getReader().read();
  const announcement = JSON.parse(new TextDecoder().decode(value)) as Announcement;
  return { child, announcement };
}

const folder = async () => {
  const path = await mkdtemp(join(tmpdir(), "local-cloud-"));
  return { path, [Symbol.asyncDispose]: async () => rm(path, { recursive: true }) };
};

const containersOf = (directory: string): readonly string[] => {
  const label = `label=cluster-e2e.local-cloud=${directory}`;
  const listed = Bun.spawnSync([
    "docker",
    "ps",
    "--all",
    "--quiet",
    "--filter",
    label,
  ]).stdout.toString();
  return listed.split("\n").filter((line) => line !== "");
};

const networksOf = (directory: string): string =>
  Bun.spawnSync([
    "docker",
    "network",
    "ls",
    "--quiet",
    "--filter",
    `label=cluster-e2e.local-cloud=${directory}`,
  ])
    .stdout.toString()
    .trim();

async function launch(
  { endpoint, region, ...credentials }: Announcement,
  userData: string,
): Promise<EC2Client> {
  const client = new EC2Client({ endpoint, region, credentials });
  const UserData = Buffer.from(userData).toString("base64");
  const changes = { UserData, InstanceInitiatedShutdownBehavior: "terminate" as const };
  await client.send(new RunInstancesCommand(launchOf(await debianImage(client), changes)));
  return client;
}

const instances = async ({ endpoint, controlToken }: Announcement) => {
  const headers = { authorization: `Bearer ${controlToken}` };
  return (await (
    await fetch(`${endpoint}/_control/instances`, { headers })
  ).json()) as readonly InstanceView[];
};

/** Runs a command over ssh like a user, with strict host key checking. */
async function ssh(
  path: string,
  address: string,
  command: string,
): Promise<{ status: number; stdout: string }> {
  const files = [
    "-F",
    "none",
    "-i",
    join(path, "key"),
    "-o",
    `UserKnownHostsFile=${join(path, "known_hosts")}`,
  ];
  const strict = [
    "-o",
    "StrictHostKeyChecking=yes",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=5",
  ];
  const child = Bun.spawn(["ssh", ...files, ...strict, `admin@${address}`, command], {
    stdout: "pipe",
    stderr: "ignore",
  });
  const [status, stdout] = await Promise.all([child.exited, new Response(child.stdout).text()]);
  return { status, stdout };
}

test.skipIf(!canBoot)(
  "a machine boots with its user data, survives a reboot, and is terminated when it powers off",
  async () => {
    await using directory = await folder();
    const { path } = directory;
    const [userKey, hostKey] = [generateKeyPair("test"), generateKeyPair("test")];
    await writeFile(join(path, "key"), userKey.privateKey, { mode: 0o600 });
    const { child, announcement } = await startProcess(path);
    try {
      const userData = {
        ssh_keys: { ed25519_private: hostKey.privateKey, ed25519_public: hostKey.publicKey },
        users: ["default", { name: "admin", ssh_authorized_keys: [userKey.publicKey] }],
      };
      const client = await launch(announcement, `#cloud-config\n${JSON.stringify(userData)}`);
      const [machine] = await eventually(
        async () => instances(announcement),
        ([one]) => one?.state === "running",
      );
      const address = machine!.publicAddress!;
      await Bun.write(
        join(path, "known_hosts"),
        `${address} ${hostKey.publicKey.split(" ").slice(0, 2).join(" ")}\n`,
      );
      const login = async () =>
        ssh(path, address, "hostname; cat /proc/sys/kernel/random/boot_id /run/machine-mark");
      const first = await eventually(login, ({ stdout }) => stdout !== "");
      expect(first.stdout).toStartWith(`ip-${machine!.privateAddress.replaceAll(".", "-")}\n`);

      await ssh(path, address, "sudo sh -c 'echo 1 >/run/machine-mark; sync; systemctl reboot'");
      const isBack = ({ stdout, status }: { status: number; stdout: string }) =>
        stdout !== "" && status === 1;
      await eventually(login, isBack);
      expect((await instances(announcement))[0]!.state).toBe("running");

      await ssh(path, address, "sudo systemctl poweroff");
      const [gone] = await eventually(
        async () => instances(announcement),
        ([one]) => one?.state === "terminated",
      );
      expect(gone!.stateReason!.code).toBe("Client.InstanceInitiatedShutdown");
      expect(containersOf(path)).toEqual([]);
      const InstanceId = machine!.instanceId;
      const { Output } = await client.send(
        new GetConsoleOutputCommand({ InstanceId, Latest: true }),
      );
      expect(Buffer.from(Output!, "base64").toString()).toMatch(/cloud-init[^]*System Power Off/);
    } finally {
      child.kill("SIGTERM");
      await child.exited;
    }
    expect(networksOf(path)).toBe("");
  },
);

test.skipIf(!canBoot)(
  "a local cloud removes what a killed one with the same folder left, but doesn't touch a running one",
  async () => {
    await using directory = await folder();
    const { path } = directory;
    const killed = await startProcess(path);
    await launch(killed.announcement, "#cloud-config\n{}");
    await eventually(
      async () => containersOf(path).length,
      (count) => count === 1,
    );
    const second = Bun.spawn(
      [process.execPath, main, "--driver", "container", "--directory", path],
      {
        stderr: "pipe",
      },
    );
    expect(await new Response(second.stderr).text()).toContain("has a local cloud with the folder");
    expect(containersOf(path)).toHaveLength(1);
    killed.child.kill("SIGKILL");
    await killed.child.exited;
    expect(containersOf(path)).toHaveLength(1);
    const next = await startProcess(path);
    expect(containersOf(path)).toEqual([]);
    next.child.kill("SIGTERM");
    expect(await next.child.exited).toBe(0);
    expect(networksOf(path)).toBe("");
  },
);

test.skipIf(!canBoot)(
  "an instance whose image can't boot here ends in terminated, with that reason",
  async () => {
    await using directory = await folder();
    const { child, announcement } = await startProcess(directory.path);
    try {
      const { DescribeImagesCommand } = await import("@aws-sdk/client-ec2");
      const { endpoint, region, ...credentials } = announcement;
      const client = new EC2Client({ endpoint, region, credentials });
      const Filters = [
        { Name: "name", Values: ["Rocky-9-EC2-Base-*.x86_64"] },
        { Name: "state", Values: ["available"] },
        { Name: "virtualization-type", Values: ["hvm"] },
      ];
      const { Images } = await client.send(
        new DescribeImagesCommand({ Owners: ["792107900819"], Filters }),
      );
      await client.send(new RunInstancesCommand(launchOf(Images![0]!.ImageId!, {})));
      const [ended] = await eventually(
        async () => instances(announcement),
        ([one]) => one?.state === "terminated",
      );
      expect(ended!.stateReason!.message).toContain(
        "no container image for rocky-9; there is debian-12",
      );
    } finally {
      child.kill("SIGTERM");
      await child.exited;
    }
  },
);

/** A program that we start, such as QEMU, may be taken over. It must find no credentials in its environment. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmod, mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { bootableDisk } from "../support/bootable-disk.ts";
import { until } from "../support/until.ts";
import { run } from "./support/executable.ts";
import { shell } from "./support/shell.ts";
import { temporaryFolder } from "./support/temporary-folder.ts";
import { startTestVms } from "./support/test-vms.ts";
import type { TestVms } from "./support/test-vms.ts";

const secret = "an-environment-s-secret";
const ownSecrets = {
  CLOUD_ACCESS_KEY_ID: secret,
  CLOUD_SECRET_ACCESS_KEY: secret,
  CLOUD_SESSION_TOKEN: secret,
};
const otherSecrets = {
  AWS_SECRET_ACCESS_KEY: secret,
  GITHUB_TOKEN: secret,
  DATABASE_PASSWORD: secret,
};

const state: { vms?: TestVms } = {};
const vms = (): TestVms => state.vms!;
const missing = Bun.which("qemu-system-x86_64") === null ? "no qemu-system-x86_64 here" : undefined;

beforeAll(async () => {
  state.vms = await startTestVms();
});

afterAll(async () => {
  await state.vms?.[Symbol.asyncDispose]();
});

test.skipIf(missing !== undefined)(
  `a QEMU that somebody takes over has nothing of the user's, and is behind a filter of system calls (${missing ?? "here"})`,
  async () => {
    const id = vms().id("hostile");
    const [image, artifact] = [join(vms().folder, "empty.img"), join(vms().folder, "idle.sh")];
    await Bun.write(image, bootableDisk());
    await Bun.write(artifact, "#!/bin/bash\n# variant: oss\n");
    const options =
      "--variant oss --agents 1 --public-agents 0 --memory 256 --cpus 1 --disk-size 1g --accelerator tcg";
    const words = [
      "create",
      "-v",
      "--fresh-boot",
      ...options.split(" "),
      "--image",
      image,
      "-c",
      id,
      artifact,
    ];
    const creating = vms().start(words, {
      environment: { ...ownSecrets, ...otherSecrets },
    });
    await creating.said("Start virtual machines: done");
    const machines = await vms().machines(id);
    expect([...machines.keys()].toSorted()).toEqual(["agent_0", "master_0", "network"]);
    for (const pid of machines.values()) {
      const environment = await readFile(`/proc/${pid}/environ`, "utf8");
      expect(environment).toContain("PATH=");
      expect(environment).not.toContain(secret);
      expect(await readFile(`/proc/${pid}/status`, "utf8")).toMatch(/^Seccomp:\s+2$/m);
    }
    creating.interrupt("SIGINT");
    await creating.ended;
    expect((await vms().machines(id)).size).toBe(0);
  },
);

test("a container engine is given the user's settings, and none of this program's credentials", async () => {
  await using folder = await temporaryFolder();
  const [docker, seen] = [join(folder.path, "docker"), join(folder.path, "seen")];
  await Bun.write(docker, `#!/bin/sh\nenv >>'${seen}'\nexit 1\n`);
  await chmod(docker, 0o755);
  const environment = {
    ...ownSecrets,
    PATH: `${folder.path}:/usr/bin:/bin`,
    XDG_STATE_HOME: folder.path,
    DOCKER_HOST: "unix:///nowhere",
  };
  await run("cluster-container", ["list", "--engine", "docker"], { environment });
  const given = await readFile(seen, "utf8");
  expect(given).toContain("DOCKER_HOST=unix:///nowhere");
  expect(given).not.toContain(secret);
});

/** A cluster whose only machine is a process that sleeps: enough for a command that doesn't log in. */
async function sleepingCluster(vmState: string): Promise<AsyncDisposable> {
  const creationId = "0123456789abcdef";
  const directory = join(vmState, `sleeping-${creationId}`);
  const machine = join(directory, "machines", "master_0");
  await mkdir(machine, { recursive: true });
  const counts = { master: 1, agent: 0, public_agent: 0 };
  const ports = { ssh: 1, http: 2, https: 3 };
  const node = {
    id: "vm-01234567-0",
    role: "master",
    index: 0,
    privateAddress: "10.93.0.2",
    ports,
  };
  const facts = {
    schemaVersion: 1,
    clusterId: "sleeping",
    creationId,
    variant: "oss",
    distribution: "debian-12",
    counts,
  };
  const rest = { createdAt: "2026-01-01T00:00:00.000Z", createdBy: "0.0.0", nodes: [node] };
  await Bun.write(join(directory, "cluster.json"), JSON.stringify({ ...facts, ...rest }));
  await shell('ssh-keygen -q -t ed25519 -N "" -f "$0/id_ed25519"', [directory], directory);
  await shell(
    `printf '[127.0.0.1]:1 %s\\n' "$(cat "$0/id_ed25519.pub")" >"$0/known_hosts"`,
    [directory],
    directory,
  );
  const pidFile = join(machine, "qemu.pid");
  const script = 'exec 9>"$1"; flock 9; echo "$$" >&9; echo started; read _';
  const child = Bun.spawn(["sh", "-c", script, "qemu", pidFile], { stdin: "pipe", stdout: "pipe" });
  await child.stdout.getReader().read();
  await Bun.write(join(machine, "started"), "");
  return {
    [Symbol.asyncDispose]: async () => {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}

test.skipIf(process.platform !== "linux")(
  "the browser gets the user's desktop, and no credentials",
  async () => {
    await using folder = await temporaryFolder();
    const [opener, seen] = [join(folder.path, "xdg-open"), join(folder.path, "seen")];
    await Bun.write(opener, `#!/bin/sh\nenv >'${seen}.draft'\nmv '${seen}.draft' '${seen}'\n`);
    await chmod(opener, 0o755);
    await using _ = await sleepingCluster(join(folder.path, "cluster-e2e", "vm"));
    const desktop = {
      DISPLAY: ":7",
      WAYLAND_DISPLAY: "wayland-7",
      XDG_RUNTIME_DIR: "/run/user/7",
      BROWSER: "lynx",
    };
    const environment = {
      ...ownSecrets,
      ...otherSecrets,
      ...desktop,
      AWS_PROFILE: secret,
      PATH: `${folder.path}:/usr/bin:/bin`,
      XDG_STATE_HOME: folder.path,
    };
    const { status, stdout } = await run("cluster-vm", ["web", "-c", "sleeping"], { environment });
    expect({ status, stdout }).toEqual({ status: 0, stdout: "http://127.0.0.1:2/\n" });
    await until("the browser has been started", async () => Bun.file(seen).exists());
    const given = (await readFile(seen, "utf8")).split("\n");
    expect(given).toEqual(
      expect.arrayContaining(Object.entries(desktop).map(([name, value]) => `${name}=${value}`)),
    );
    expect(given.filter((line) => line.includes(secret))).toEqual([]);
  },
);

test.each([
  ["a relative HOME", { HOME: "here" }, 'HOME is the relative path "here"'],
  [
    "a relative XDG_STATE_HOME",
    { HOME: "/", XDG_STATE_HOME: "here" },
    'XDG_STATE_HOME is the relative path "here"',
  ],
])(
  "with %s, no key, log or known host goes into the current folder",
  async (_, variables, message) => {
    await using folder = await temporaryFolder();
    const cwd = join(folder.path, "cwd");
    await mkdir(cwd);
    const environment = { ...ownSecrets, AWS_ENDPOINT_URL_EC2: "http://127.0.0.1:1", ...variables };
    for (const words of [
      ["list"],
      ["inspect"],
      ["create", "--variant", "oss", "/nowhere/installer.sh", "-c", "gone"],
    ]) {
      for (const program of ["cluster-vm", "cluster-cloud"]) {
        const ended = await run(program, words, { environment, cwd });
        expect({ program, words, status: ended.status }).toEqual({ program, words, status: 5 });
        expect(ended.stderr).toContain(message);
        expect(ended.stderr).toContain("[machine-not-set-up]");
      }
    }
    expect(await readdir(cwd)).toEqual([]);
  },
);

test("list doesn't answer for Podman where the user chose a Docker that is silent", async () => {
  await using folder = await temporaryFolder();
  const silent =
    'echo "Cannot connect to the Docker daemon at $DOCKER_HOST. Is the docker daemon running?" >&2; exit 1';
  const podman = `case $1 in info) echo '{"host":{"security":{"rootless":false}}}' ;; *) echo '[]' ;; esac`;
  for (const [name, lines] of Object.entries({ docker: silent, podman })) {
    await Bun.write(join(folder.path, name), `#!/bin/sh\n${lines}\n`);
    await chmod(join(folder.path, name), 0o755);
  }
  const environment = {
    PATH: `${folder.path}:/usr/bin:/bin`,
    HOME: folder.path,
    DOCKER_HOST: "tcp://192.0.2.1:2375",
  };
  const listed = await run("cluster-container", ["list"], { environment });
  expect({ status: listed.status, stdout: listed.stdout }).toEqual({ status: 5, stdout: "" });
  expect(listed.stderr).toContain("Docker does not answer");
  expect(listed.stderr).toContain("unset DOCKER_HOST");
});

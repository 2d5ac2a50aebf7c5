import { expect, test } from "bun:test";
import {
  containerSchema,
  readContainerOptions,
} from "../../../../src/backend/container/options.ts";
import { nodeRecipe } from "../../../../src/backend/container/launch/node-image.ts";
import {
  chooseDistribution,
  defaultDistribution,
  defaultDistributionText,
  distributions,
} from "../../../../src/backend/container/distributions.ts";
import { deadlineFiles } from "../../../../src/backend/shared/first-boot.ts";
import { identityArchive } from "../../../../src/backend/container/launch/launch.ts";
import { engineKinds } from "../../../../src/backend/container/engine/engine-kinds.ts";
import {
  findRights,
  possibleRights,
  systemFlags,
} from "../../../../src/backend/container/launch/system-flags.ts";
import { ClusterError } from "../../../../src/errors.ts";
import type { Engine } from "../../../../src/backend/container/engine/engine.ts";
import { failureOf } from "../../../support/failure-of.ts";

test.each([
  [
    "volume",
    containerSchema.customVolumes,
    ["/a:/b", "/a b:/c:ro", "/a:/b:rw,z"],
    ["a:/b", "/a", "/a:b", "/a:/b:no", "name:/b", "/a:/b:ro:x"],
  ],
  [
    "memory size",
    containerSchema.memory,
    ["512m", "2g", "2048", "2G", "1t"],
    ["", "0", "1", "5m", "2 g", "64k", "1073741824b", "-1", "1.5g"],
  ],
  [
    "number of CPUs",
    containerSchema.cpus,
    ["1", "0.5", "2.25"],
    ["", "0", "0.0", "-1", "1e3", "two"],
  ],
  [
    "image",
    containerSchema.nodeImage,
    ["debian:12", "localhost/a:b", "r.example.com:5000/a/b@sha256:0f"],
    ["", "-v", "A", "a b", "--x"],
  ],
])("what is a %s and what is not", (_, { read }, good, bad) => {
  for (const given of good) expect(read(given)).toStartWith(given);
  for (const given of bad) expect(read(given)).toBeUndefined();
});

test("all that is wrong with a library's options is told at once", async () => {
  const engine = "containerd" as "docker";
  const options = {
    engine,
    linuxDistribution: "centos-6",
    customVolumes: ["x"],
    memory: "much",
    cpus: -1,
    nodeImage: "-",
  };
  const error = await failureOf(Promise.try(() => readContainerOptions(options)));
  expect(error.id).toBe("bad-usage");
  expect(error.facts!["problems"]).toHaveLength(6);
});

test("every distribution has a recipe, whose tag depends on its text alone", () => {
  const images = distributions.map((distribution) => nodeRecipe(distribution, undefined));
  expect(new Set(images.map(({ image }) => image)).size).toBe(distributions.length);
  for (const [index, { image, containerfile }] of images.entries()) {
    expect(image).toMatch(
      new RegExp(`^localhost/cluster-e2e-node:${distributions[index]}-[0-9a-f]{16}$`),
    );
    expect(containerfile).toMatch(/^FROM docker\.io\/\S+:\S+\n/);
    expect(containerfile).toContain("openssh-server");
    expect(nodeRecipe(distributions[index]!, undefined)).toEqual(images[index]!);
  }
});

test("what a platform needs comes last in a recipe, under a name of its own", async () => {
  const plain = nodeRecipe("debian-12", undefined);
  const script = "echo 'ready' # \"$PATH\"\n";
  const prepared = nodeRecipe("debian-12", { name: "dcos", script });
  expect(prepared.image).toMatch(/^localhost\/cluster-e2e-node:debian-12-dcos-[0-9a-f]{16}$/);
  expect(prepared.containerfile).toStartWith(plain.containerfile);
  const command = /^RUN (echo \S+ \| base64 -d) \| sh -s/m.exec(
    prepared.containerfile.slice(plain.containerfile.length),
  )?.[1];
  expect(await new Response(Bun.spawn(["sh", "-c", command!]).stdout).text()).toBe(script);
});

test("where no distribution is named, it is one that boots on the engine's machine", () => {
  for (const version of ["1", "2"] as const) {
    const chosen = chooseDistribution(defaultDistribution, version, undefined);
    expect(distributions).toContain(chosen);
    expect(chooseDistribution(chosen, version, "debian-12")).toBe(chosen);
    expect(defaultDistributionText).toContain(chosen);
  }
  expect(chooseDistribution(defaultDistribution, "1", undefined)).toBe("centos-7");
  expect(chooseDistribution(defaultDistribution, "1", "debian-12")).toBe("debian-12");
});

test("a distribution that can't boot on the engine's machine is refused, and another one named", async () => {
  const error = await failureOf(Promise.try(() => chooseDistribution("centos-7", "2", undefined)));
  expect(error.id).toBe("machine-not-set-up");
  expect(error.message).toContain("centos-7 cannot boot in containers here");
  expect(error.hint).toContain("`linuxDistribution`, such as debian-12");
});

test("CentOS 7 gets its packages from the vault, on each processor", () => {
  const { containerfile } = nodeRecipe("centos-7", undefined);
  expect(containerfile).toContain("baseurl=http://vault.centos.org/7.9.2009|");
  expect(containerfile).toContain("baseurl=http://vault.centos.org/altarch/7.9.2009|");
  expect(containerfile).toContain("yum -y install");
});

const host = {
  cgroupVersion: "2",
  hasAppArmor: false,
  hasSelinux: false,
  memoryBytes: 8e9,
} as const;
const { docker, podman } = engineKinds;
const privileged = { isPrivileged: true, words: ["--privileged"] };
const named = { isPrivileged: false, words: ["--cap-add=SYS_ADMIN"] };

test("under cgroups 2 a node gets a tree of its own; under 1 it gets the host's", () => {
  const flags = systemFlags(docker, host, privileged);
  const words = ["--privileged", "--cgroupns=private", "--env=container=docker"];
  expect(flags.words).toEqual(expect.arrayContaining(words));
  expect(flags.command.slice(0, 2)).toEqual(["/bin/sh", "-c"]);
  expect(flags.command[2]).toEndWith("exec /sbin/init");
  const old = systemFlags(docker, { ...host, cgroupVersion: "1" }, named);
  expect(old.words).toEqual(
    expect.arrayContaining(["--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"]),
  );
});

test("Podman leaves a node's systemd to us, and has no limit of processes for it", () => {
  expect(systemFlags(podman, host, privileged).words).toEqual(
    expect.arrayContaining(["--systemd=false", "--pids-limit=0", "--env=container=podman"]),
  );
  expect(systemFlags(docker, host, privileged).words).not.toContain("--systemd=false");
});

test("only where AppArmor and SELinux are on, and named capabilities are needed, they are told to stand aside", () => {
  const asides = ["--security-opt=apparmor=unconfined", "--security-opt=label=disable"];
  const [most, least] = possibleRights(docker, { hasAppArmor: true, hasSelinux: true });
  expect(least!.words).toEqual(expect.arrayContaining(asides));
  for (const { words } of [most!, ...possibleRights(docker, host)]) {
    expect(words.filter((word) => asides.includes(word))).toEqual([]);
  }
});

test.each([
  ["everything", docker, () => true, "--privileged"],
  ["devices", docker, (words: string) => words.includes("--device"), "--device=/dev/fuse"],
  ["nothing more", docker, () => false, "--cap-add=SYS_ADMIN"],
  ["reboots", docker, (words: string) => words.includes("SYS_BOOT"), "--cap-add=SYS_BOOT"],
  [
    "privileges with lower limits",
    podman,
    (words: string) => words.includes("--ulimit=nofile"),
    "--ulimit=nofile",
  ],
  ["nothing more", podman, () => false, "--ulimit=nofile"],
] as const)(
  "a node gets the most that the engine gives, here %s",
  async (_, kind, isGiven, expected) => {
    const engine: Engine = {
      kind,
      option: "",
      ask: async () => Promise.resolve(""),
      read: () => {
        throw new Error("nothing is read");
      },
      defer: async () => ({ run: async () => Promise.reject(new Error("nothing is deferred")) }),
      change: async ({ words }) => {
        if (isGiven(words.join(" "))) return Promise.resolve("");
        throw new ClusterError("engine-failed", "refused");
      },
    };
    const rights = await findRights(engine, { ...kind.readFacts({}), ...host }, "image");
    expect(rights.words.join(" ")).toContain(expected);
    expect(rights.isPrivileged).toBe(rights.words.includes("--privileged"));
  },
);

test("a node's keys come with the modes that sshd wants, folders before what is in them", async () => {
  const hostKey = { privateKey: "PRIVATE\n", publicKey: "ssh-ed25519 AAAA host" };
  const deadline = new Date(1_700_000_000_000);
  const archive = await identityArchive(
    { hostKey, publicKey: "ssh-ed25519 BBBB me\n", files: deadlineFiles(deadline) },
    0,
  );
  const listing = Bun.spawn(["tar", "-tvf", "-"], { stdin: Buffer.from(archive), stdout: "pipe" });
  const lines = (await new Response(listing.stdout).text()).trim().split("\n");
  expect(lines.map((line) => [line.slice(0, 10), line.split(" ").at(-1)])).toEqual([
    ["-rw-------", "etc/ssh/ssh_host_ed25519_key"],
    ["-rw-r--r--", "etc/ssh/ssh_host_ed25519_key.pub"],
    ["drwx------", "root/.ssh/"],
    ["-rw-------", "root/.ssh/authorized_keys"],
    ["-rw-r--r--", "etc/cloud/cloud-init.disabled"],
    ["drwxr-xr-x", "etc/systemd/system/systemd-sysctl.service.d/"],
    ["-rw-r--r--", "etc/systemd/system/systemd-sysctl.service.d/cluster-e2e.conf"],
    ["drwxr-xr-x", "etc/systemd/system/user@0.service.d/"],
    ["-rw-r--r--", "etc/systemd/system/user@0.service.d/cluster-e2e.conf"],
    ...["reboot", "poweroff", "halt"].flatMap((end) => [
      ["drwxr-xr-x", `etc/systemd/system/systemd-${end}.service.d/`],
      ["-rw-r--r--", `etc/systemd/system/systemd-${end}.service.d/cluster-e2e.conf`],
    ]),
    ["-rwxr-xr-x", "usr/lib/systemd/system-shutdown/cluster-e2e"],
    ["-rwxr-xr-x", "usr/local/sbin/cluster-e2e-deadline"],
    ["-rw-r--r--", "etc/systemd/system/cluster-e2e-deadline.service"],
    ["drwxr-xr-x", "etc/systemd/system/sysinit.target.d/"],
    ["-rw-r--r--", "etc/systemd/system/sysinit.target.d/cluster-e2e-deadline.conf"],
  ]);
  expect(Buffer.from(archive).toString()).toContain(
    "ExecStart=/bin/sh /usr/local/sbin/cluster-e2e-deadline 1700000000",
  );
});

test("what is asked for reaches the creation, and nothing else does", () => {
  const given = { memory: "2g", cpus: 0.5, nodeImage: "a:1", customVolumes: ["/tmp:/b:ro"] };
  const usual = { offline: false, linuxDistribution: defaultDistribution };
  expect(readContainerOptions(given).options).toMatchObject({
    ...usual,
    nodeImage: "a:1",
    customVolumes: ["/tmp:/b:ro"],
    limits: { memory: "2g", cpus: "0.5" },
  });
  expect(readContainerOptions({}).options).toMatchObject({
    ...usual,
    customVolumes: [],
    limits: { memory: undefined, cpus: undefined },
  });
});

import { expect, test } from "bun:test";
import { readContainerOptions } from "../../../../src/backend/container/backend-options.ts";
import { distributions, nodeRecipe } from "../../../../src/backend/container/containerfiles.ts";
import {
  cpusProblem,
  imageProblem,
  memoryProblem,
  volumeProblem,
} from "../../../../src/backend/container/container-creation.ts";
import { identityArchive } from "../../../../src/backend/container/identity.ts";
import { systemFlags } from "../../../../src/backend/container/system-flags.ts";
import { failureOf } from "../../../support/failure-of.ts";

test.each([
  [
    "volume",
    volumeProblem,
    ["/a:/b", "/a b:/c:ro", "/a:/b:rw,z"],
    ["a:/b", "/a", "/a:b", "/a:/b:no", "name:/b", "/a:/b:ro:x"],
  ],
  ["memory size", memoryProblem, ["512m", "2g", "1073741824", "2G"], ["", "0", "2 g", "2t", "-1", "1.5g"]],
  ["number of CPUs", cpusProblem, ["1", "0.5", "2.25"], ["", "0", "0.0", "-1", "1e3", "two"]],
  [
    "image",
    imageProblem,
    ["debian:12", "localhost/a:b", "r.example.com:5000/a/b@sha256:0f"],
    ["", "-v", "A", "a b", "--x"],
  ],
])("what is a %s and what is not", (_, problem, good, bad) => {
  expect(good.filter((given) => problem(given) !== undefined)).toEqual([]);
  expect(bad.filter((given) => problem(given) === undefined)).toEqual([]);
});

test("all that is wrong with a library's options is told at once", async () => {
  const options = { linuxDistribution: "centos-6", customVolumes: ["x"], memory: "much", cpus: -1, nodeImage: "-" };
  const error = await failureOf(Promise.try(() => readContainerOptions(options)));
  expect(error.id).toBe("bad-usage");
  expect(error.facts!["problems"]).toHaveLength(5);
});

test("every distribution has a recipe, whose tag depends on its text alone", () => {
  const images = distributions.map((distribution) => nodeRecipe(distribution));
  expect(new Set(images.map(({ image }) => image)).size).toBe(distributions.length);
  for (const [index, { image, containerfile }] of images.entries()) {
    expect(image).toMatch(new RegExp(`^localhost/cluster-e2e-node:${distributions[index]}-[0-9a-f]{16}$`));
    expect(containerfile).toMatch(/^FROM docker\.io\/\S+:\S+\n/);
    expect(containerfile).toContain("openssh-server");
    expect(nodeRecipe(distributions[index]!)).toEqual(images[index]!);
  }
});

const host = { cgroupVersion: "2", hasAppArmor: false, hasSelinux: false } as const;

test("under cgroups 2 an unprivileged node makes its own tree writable; under 1 it gets the host's", () => {
  expect(systemFlags(host, true)).toMatchObject({ command: ["/sbin/init"] });
  expect(systemFlags(host, true).words).toEqual(expect.arrayContaining(["--privileged", "--cgroupns=private"]));
  expect(systemFlags(host, false).command.join(" ")).toContain("remount,rw /sys/fs/cgroup && exec /sbin/init");
  const old = systemFlags({ ...host, cgroupVersion: "1" }, false);
  expect(old.command).toEqual(["/sbin/init"]);
  expect(old.words).toEqual(expect.arrayContaining(["--cgroupns=host", "--volume=/sys/fs/cgroup:/sys/fs/cgroup:rw"]));
});

test("only where AppArmor and SELinux are on, and named capabilities are needed, they are told to stand aside", () => {
  const strict = { ...host, hasAppArmor: true, hasSelinux: true };
  const asides = ["--security-opt=apparmor=unconfined", "--security-opt=label=disable"];
  expect(systemFlags(strict, false).words).toEqual(expect.arrayContaining(asides));
  for (const { words } of [systemFlags(strict, true), systemFlags(host, false)]) {
    expect(words.filter((word) => asides.includes(word))).toEqual([]);
  }
});

test("a node's keys come with the modes that sshd wants, folders before what is in them", async () => {
  const hostKey = { privateKey: "PRIVATE\n", publicKey: "ssh-ed25519 AAAA host" };
  const archive = await identityArchive({ hostKey, publicKey: "ssh-ed25519 BBBB me\n" }, 0);
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
  ]);
});

import { expect, test } from "bun:test";
import { clusterLayout } from "../../../../src/platform/layouts/cluster.ts";
import { dcosLayout } from "../../../../src/platform/layouts/dcos.ts";
import { folderLayout } from "../../../../src/platform/layouts/folder.ts";
import { leastFacts } from "../../../support/platform-facts.ts";
import { imagePreparation } from "../../../../src/platform/layouts/find-layout.ts";

test("an image gets what a layout's nodes need beside what every image has, of both variants", () => {
  expect(imagePreparation(clusterLayout)).toBeUndefined();
  const { name, script } = imagePreparation(dcosLayout)!;
  expect(name).toBe("dcos");
  const [words] = script.split("\n");
  for (const program of [...dcosLayout.needs, ...dcosLayout.enterpriseNeeds])
    expect(words?.split(" ")).toContain(program);
});

test("an image gets the packages of a platform that is a folder, and nothing if there are none", () => {
  expect(imagePreparation(folderLayout(leastFacts))).toBeUndefined();
  const packages = { apt: ["etcd-server"], dnf: ["etcd"] };
  const { name, script } = imagePreparation(folderLayout({ ...leastFacts, packages }))!;
  expect(name).toBe("folder");
  expect(script).toContain("\nAPT_PACKAGES=etcd-server\nRPM_PACKAGES=etcd\n");
  expect(script.split("\n")[0]).not.toContain("docker");
  const docker = imagePreparation(folderLayout({ ...leastFacts, conditions: ["docker"] }))!;
  expect(docker.script.split("\n")[0]).toContain(" docker");
});

test("the same layout gives the same script, since an image is known by it", () => {
  expect(imagePreparation(dcosLayout)).toEqual(imagePreparation(dcosLayout));
});

test("Docker of an image starts with its node, after SSH, in the node's own control group", () => {
  const { script } = imagePreparation(dcosLayout)!;
  expect(script).toMatch(
    /\[Unit\]\nAfter=ssh\.service sshd\.service\n\n\[Service\]\nEnvironment=DOCKER_\w+=1\nExecStart=\nExecStart=.*--cgroup-parent/s,
  );
  expect(script).toContain("\n  systemctl enable docker.service\n");
});

/** What the library installs on in-process machines. */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "bun:test";
import { Cluster } from "../../../src/index.ts";
import { leftIn, nothing } from "../../support/cloud-fixture.ts";
import { failureOf } from "../../support/failure-of.ts";
import { answers, create, openFixture } from "../../support/library-fixture.ts";

test("an artifact of the other variant, or a file that isn't one, is rejected before any node changes", async () => {
  await using fixture = await openFixture();
  await using cluster = await create(fixture, { agents: 0, publicAgents: 0 });
  const artifact = async (text: string): Promise<string | undefined> => {
    const buildArtifact = join(fixture.folder, "artifact.sh");
    await writeFile(buildArtifact, text);
    const { ipDetectPath, baseConfig } = cluster;
    const failure = await failureOf(
      cluster.installFromPath({ buildArtifact, clusterConfig: baseConfig, ipDetectPath }),
    );
    return failure.id;
  };
  const commands = fixture.cloud.answers.answered.length;
  expect(await artifact("#!/bin/bash\n# variant: enterprise\n")).toBe("variant-mismatch");
  expect(await artifact("<html>")).toBe("artifact-invalid");
  const missing = {
    buildArtifact: "/nowhere/a.sh",
    clusterConfig: {},
    ipDetectPath: "/nowhere/ip-detect",
  };
  expect(["artifact-unreachable", "bad-usage"]).toContain(
    (await failureOf(cluster.installFromPath(missing))).id!,
  );
  expect((await failureOf(cluster.waitForClusterEnterprise())).id).toBe("bad-usage");
  expect((await failureOf(cluster.sync(fixture.folder))).id).toBe("bad-usage");
  expect(fixture.cloud.answers.answered).toHaveLength(commands);
});

test("with install, the platform is installed and waited for; if that fails, the cluster is gone", async () => {
  await using fixture = await openFixture();
  const version = '{"variant":"none","version":"1.0","name":"etcd"}\n';
  fixture.cloud.answers.replace([
    { pattern: "artifact\\.sh --version", stdout: version },
    { pattern: "artifact\\.sh --genconf", stdout: "platform_install.sh\n" },
    {
      pattern: "e2e-readiness",
      readsStdin: true,
      stdout: "layout=folder\nstatus=exit 3\nunit=failed\n",
    },
    ...answers,
  ]);
  const request = { masters: 1, agents: 0, publicAgents: 0, install: true };
  const creating = Cluster.create(fixture.backend, { ...request, platform: "example:etcd" });
  expect((await failureOf(creating)).id).toBe("install-failed");
  expect(leftIn(fixture.cloud)).toEqual(nothing);
  const without = await failureOf(Cluster.create(fixture.backend, request));
  expect(without.message).toContain("`install`: pass `platform` too");
});

test("an example is installed as if it were a folder, and one that doesn't exist is a problem", async () => {
  await using fixture = await openFixture();
  const version = '{"variant":"none","version":"1.0","name":"etcd"}\n';
  fixture.cloud.answers.replace([
    { pattern: "artifact\\.sh --version", stdout: version },
    { pattern: "artifact\\.sh --genconf", stdout: "platform_install.sh\n" },
    ...answers,
  ]);
  await using cluster = await Cluster.create(fixture.backend, {
    masters: 3,
    agents: 0,
    publicAgents: 0,
  });
  // The configuration and the script have defaults.
  const install = async (buildArtifact: string): Promise<void> =>
    cluster.installFromPath({ buildArtifact });
  const failure = await failureOf(install("example:zookeeper"));
  expect(failure.id).toBe("bad-usage");
  expect(failure.message).toContain("example:etcd");
  await install("example:etcd");
  expect(fixture.told).toContain("master_2: Start installation: done");
});

test("a failed installation saves the nodes' logs, with secrets masked", async () => {
  await using fixture = await openFixture();
  const license = "license-0123456789";
  fixture.cloud.answers.replace([
    {
      pattern: "artifact\\.sh --genconf",
      stdout: `license_key_contents: ${license} is not one\n`,
      status: 1,
    },
    {
      pattern: "e2e-logs",
      readsStdin: true,
      stdout: `genconf.log ${Buffer.from(`it names ${license}\n`).toString("base64")}\n`,
    },
    ...answers,
  ]);
  await using cluster = await create(fixture, { agents: 0, publicAgents: 0 });
  const buildArtifact = join(fixture.folder, "artifact.sh");
  await writeFile(buildArtifact, "#!/bin/bash\n# variant: oss\n");
  const clusterConfig = { ...cluster.baseConfig, license_key_contents: license };
  const { ipDetectPath } = cluster;
  const failure = await failureOf(
    cluster.installFromPath({ buildArtifact, clusterConfig, ipDetectPath }),
  );
  expect(failure.id).toBe("configuration-refused");
  expect(await readFile(join(cluster.directory, "master_0.genconf.log"), "utf8")).toBe(
    "it names ***\n",
  );
  expect(fixture.told.join("\n")).not.toContain(license);
});

/** `upgrade` on containers: a platform that is a folder from version to version, and a stand-in for DC/OS from release to release. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmod, cp } from "node:fs/promises";
import { join } from "node:path";
import { buildDcosArtifact, dcosNodeImage } from "./support/dcos.ts";
import { nodeImage, startTestContainers } from "./support/test-containers.ts";
import type { TestContainers } from "./support/test-containers.ts";

const state: { containers?: TestContainers } = {};
const containers = (): TestContainers => state.containers!;

beforeAll(async () => {
  state.containers = await startTestContainers();
});

afterAll(async () => {
  await state.containers?.[Symbol.asyncDispose]();
});

/** The folder `meter` with another version; `upgrade`: lines of shell for its program of that name. */
async function meter(version: string, upgrade?: string, name = "meter"): Promise<string> {
  const folder = join(
    containers().folder,
    `${name}-${version}-${upgrade === undefined ? "bare" : Bun.hash(upgrade)}`,
  );
  await cp(join(import.meta.dir, "support", "meter"), folder, { recursive: true });
  const file = join(folder, "platform.yaml");
  const text = await Bun.file(file).text();
  await Bun.write(
    file,
    text.replace("name: meter", `name: ${name}`).replace('version: "1.0"', `version: "${version}"`),
  );
  if (upgrade !== undefined) {
    const program = `#!/bin/bash\nset -e\necho "$1 $CLUSTER_NODE $CLUSTER_OLD_VERSION" >>/var/log/upgrades\n${upgrade}\n`;
    await Bun.write(join(folder, "upgrade"), program);
    await chmod(join(folder, "upgrade"), 0o755);
  }
  return folder;
}

describe("a platform that is a folder", () => {
  const id = (): string => containers().id("meter");
  const upgrade = (...words: readonly string[]) =>
    containers().run(["upgrade", "-c", id(), ...words]);
  const on = async (node: string, line: string): Promise<string> =>
    (await containers().run(["run", "--no-test-env", "-c", id(), "--node", node, line])).stdout;
  const versions = async (): Promise<readonly (string | undefined)[]> => {
    const { stdout } = await containers().run([
      "inspect",
      "--versions",
      "--output",
      "json",
      "-c",
      id(),
    ]);
    const { cluster } = JSON.parse(stdout) as {
      readonly cluster: { readonly nodes: readonly { version?: string }[] };
    };
    return cluster.nodes.map(({ version }) => version);
  };

  test("is refused under another name, without a program for it, and does nothing with the same version", async () => {
    const created = await containers().run([
      "create",
      "--node-image",
      nodeImage,
      "--wait",
      "-c",
      id(),
      await meter("1.0"),
    ]);
    expect(created.status, created.stderr).toBe(0);
    const bare = await upgrade(await meter("2.0"));
    expect(bare).toMatchObject({ status: 2, stdout: "" });
    expect(bare.stderr).toContain("it has no program named upgrade");
    const other = await upgrade(await meter("2.0", ":", "gauge"));
    expect(other).toMatchObject({ status: 1, stdout: "" });
    expect(other.stderr).toContain('it is the platform "gauge", but master_0 has "meter"');
    const same = await upgrade(await meter("1.0", ":"));
    expect(same).toMatchObject({ status: 0, stdout: "" });
    expect(same.stderr).toContain(
      `Cluster "${id()}" already has version 1.0: there is nothing to do.`,
    );
    expect(await on("master_0", "cat /var/log/upgrades 2>&1")).toContain("No such file");
  });

  test("stops at the node where it fails, and a repaired folder continues there", async () => {
    const secret = await on(
      "agent_1",
      "cat /opt/cluster-platform/secret /opt/cluster-platform/environment",
    );
    const broken = '[ "$CLUSTER_NODE" != agent_1 ] || { echo "the meter has no room"; exit 5; }';
    const failed = await upgrade(await meter("2.0", broken));
    expect(failed).toMatchObject({ status: 1, stdout: "" });
    expect(failed.stderr).toContain(
      "The upgrade failed on agent_1: its upgrade script exited with status 5.",
    );
    expect(failed.stderr).toContain("the meter has no room");
    expect(failed.stderr).toContain("Version 2.0: master_0, agent_0. Version 1.0: agent_1.");
    expect(await versions()).toEqual(["2.0", "2.0", "1.0"]);
    const repaired = await upgrade("--output", "json", await meter("2.0", ":"));
    expect(repaired.status, repaired.stderr).toBe(0);
    expect(JSON.parse(repaired.stdout)).toMatchObject({ version: "2.0", upgraded: ["agent_1"] });
    expect(await versions()).toEqual(["2.0", "2.0", "2.0"]);
    expect(await on("master_0", "cat /var/log/upgrades")).toBe("master master_0 1.0\n");
    expect(await on("agent_1", "cat /var/log/upgrades")).toBe(
      "agent agent_1 1.0\nagent agent_1 1.0\n",
    );
    expect(
      await on("agent_1", "cat /opt/cluster-platform/secret /opt/cluster-platform/environment"),
    ).toBe(secret);
    const text = await containers().run(["inspect", "--versions", "-c", id()]);
    expect(text.stdout).toMatch(/^agent_1 .* 2\.0$/m);
  });

  test("goes on by itself on its node after Ctrl-C, and the next run picks it up", async () => {
    const folder = await meter(
      "3.0",
      '[ "$1" != agent ] || until [ -e /run/gate ]; do sleep 0.1; done',
    );
    const running = containers().start(["upgrade", "--parallel", "2", "-c", id(), folder]);
    await running.said(/agent_[01]: its upgrade script is running/);
    running.interrupt("SIGINT");
    const ended = await running.ended;
    expect(ended.signal).toBe("SIGINT");
    expect(ended.stderr).toContain("Version 3.0: master_0. Version 2.0: agent_0, agent_1.");
    expect(ended.stderr).toContain("Run the same command again to continue.");
    for (const node of ["agent_0", "agent_1"]) await on(node, "touch /run/gate");
    const again = await upgrade("--parallel", "2", folder);
    expect(again.status, again.stderr).toBe(0);
    expect(await versions()).toEqual(["3.0", "3.0", "3.0"]);
    expect(await on("agent_0", "tail -n +2 /var/log/upgrades")).toBe("agent agent_0 2.0\n");
    expect((await containers().run(["wait", "-c", id()])).status).toBe(0);
    await containers().run(["destroy", "-c", id()]);
  });
});

describe("a release of DC/OS", () => {
  const id = (): string => containers().id("dcos");

  test("upgrades its cluster with the script that its generator makes for the installed version", async () => {
    const [old, next] = await Promise.all(
      (["1.12.5", "1.13.9"] as const).map(async (release) =>
        buildDcosArtifact("oss", release, containers().folder),
      ),
    );
    const words = [
      "--variant",
      "oss",
      "--public-agents",
      "0",
      "--node-image",
      await dcosNodeImage(),
    ];
    const created = await containers().run(["create", "--wait", "-c", id(), ...words, old!]);
    expect(created.status, created.stderr).toBe(0);
    const upgraded = await containers().run(["upgrade", "-c", id(), next!]);
    expect(upgraded.status, upgraded.stderr).toBe(0);
    expect(upgraded.stderr).toContain(
      `Cluster "${id()}" now has version 1.13.9: 2 nodes upgraded in `,
    );
    const inspected = await containers().run(["inspect", "--versions", "-c", id()]);
    expect(inspected.stdout).toMatch(/^master_0 .* 1\.13\.9\nagent_0 .* 1\.13\.9$/m);
    expect((await containers().run(["wait", "-c", id(), "--timeout", "14m"])).status).toBe(0);
    const again = await containers().run(["upgrade", "-c", id(), next!]);
    expect(again).toMatchObject({ status: 0 });
    expect(again.stderr).toContain("already has version 1.13.9");
    await containers().run(["destroy", "-c", id()]);
  });
});

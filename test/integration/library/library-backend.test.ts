/** The library with a foreign backend: machines in folders, where the installation really runs. */

import { existsSync } from "node:fs";
import { chmod, mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "bun:test";
import { Cluster, type ClusterBackend, type Installation } from "../../../src/index.ts";
import { libraryRuntime } from "../../../src/library/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { folderBackend } from "../../support/folder-backend.ts";
import { exampleArtifact } from "../../support/install-example.ts";
import {
  type FolderMachine,
  type FolderMachines,
  machinesLack,
  startMachines,
} from "../../support/install-machine.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { until } from "../../support/until.ts";

interface Fixture extends AsyncDisposable {
  readonly backend: ClusterBackend<undefined>;
  readonly machines: FolderMachines;
  readonly folder: string;
  /** The ids of destroyed clusters, in order. */
  readonly destroyed: readonly string[];
}

async function openFixture(): Promise<Fixture> {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles: ["master", "agent"] });
  const { backend, destroyed } = folderBackend(machines);
  const runtime = libraryRuntime(
    { environment: { XDG_STATE_HOME: join(scratch.path, "state") } },
    {},
  );
  return {
    backend: {
      distribution: "debian-12",
      settings: () => ({ runtime, options: undefined }),
      open: async () => backend,
    },
    machines,
    folder: scratch.path,
    destroyed,
    [Symbol.asyncDispose]: async () => {
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

async function artifactIn(folder: string): Promise<string> {
  const path = join(folder, "artifact.sh");
  await writeFile(path, exampleArtifact("oss"));
  return path;
}

const genconf = (machine: FolderMachine, name: string): Promise<string> =>
  machine.read(`var/lib/cluster-e2e/installer/genconf/${name}`);

describe.skipIf(machinesLack !== undefined)("a cluster of any backend", () => {
  test("has the machines that its platform needs, if that is named", async () => {
    await using fixture = await openFixture();
    const requests: unknown[] = [];
    const backend: typeof fixture.backend = {
      ...fixture.backend,
      open: async (signal) => {
        const opened = await fixture.backend.open(signal);
        return {
          ...opened,
          plan: async (request, inner) => opened.plan((requests.push(request), request), inner),
        };
      },
    };
    {
      await using _cluster = await Cluster.create(backend, { platform: "example:etcd" });
    }
    const needs = {
      folderDistribution: "debian-12",
      imagePreparation: { name: "folder" },
      openPorts: [2379],
      webUi: "none",
    };
    expect(requests).toMatchObject([
      { counts: { master: 3, agent: 0, public_agent: 0 }, ...needs },
    ]);
    const few = await failureOf(Cluster.create(backend, { platform: "example:etcd", agents: 1 }));
    expect(few).toMatchObject({
      id: "bad-usage",
      message: expect.stringContaining("allows at most 0"),
    });
    const release = await failureOf(
      Cluster.create(backend, { platform: await artifactIn(fixture.folder) }),
    );
    expect(release).toMatchObject({
      id: "bad-usage",
      hint: expect.stringContaining("installFromPath"),
    });
    expect(requests).toHaveLength(1);
  });

  // Shows R80.
  test("is installed with exactly the given configuration and script, and waited for", async () => {
    await using fixture = await openFixture();
    const { machines, backend, folder } = fixture;
    const [master] = machines.machines;
    {
      await using cluster = await Cluster.create(backend, {
        variant: "oss",
        clusterId: "mine",
        publicAgents: 0,
      });
      const base = cluster.baseConfig;
      expect(base).toMatchObject({ cluster_name: "mine", resolvers: ["10.0.0.2"] });
      expect(base).not.toHaveProperty("ip_detect_public_filename");
      expect(await Bun.file(cluster.ipDetectPath).text()).toBe("#!/bin/sh\necho 192.0.2.7\n");
      const ipDetectPath = join(folder, "own-ip-detect");
      await writeFile(ipDetectPath, "#!/bin/sh\necho 192.0.2.8\n");
      const clusterConfig = { ...base, resolvers: ["192.0.2.53"], own: { key: [1, "two"] } };
      await cluster.installFromPath({
        buildArtifact: await artifactIn(folder),
        clusterConfig,
        ipDetectPath,
      });
      expect(Bun.YAML.parse(await genconf(master!, "config.yaml"))).toEqual({
        ...clusterConfig,
        // The URL of our server contains a secret path, which is generated when the installation starts.
        bootstrap_url: expect.stringMatching(
          new RegExp(`^${RegExp.escape(String(base["bootstrap_url"]))}/[0-9a-f]{32}$`),
        ),
      });
      expect(await genconf(master!, "ip-detect")).toBe("#!/bin/sh\necho 192.0.2.8\n");
      await cluster.waitForClusterOss({ skipHttpChecks: true });
      const { stdout } = await cluster.agents[0]!.run({
        args: ["cat", "/opt/cluster/etc/version.json"],
      });
      expect(JSON.parse(stdout)).toEqual({ variant: "oss", version: "1.0" });
      const args = ["sh", "-c", 'cat "$MACHINE/address"; exit 3'];
      const addresses = [...cluster.agents, ...cluster.masters].map(
        ({ reference, publicAddress }) => ({
          node: reference,
          status: 3,
          stdout: publicAddress,
          stderr: "",
          error: undefined,
        }),
      );
      expect(
        (await cluster.run({ args })).toSorted((a, b) => a.node.localeCompare(b.node)),
      ).toEqual(addresses as never);
      expect((await cluster.run({ args, nodes: ["masters"] })).map(({ node }) => node)).toEqual([
        "master_0",
      ]);
    }
    expect(fixture.destroyed).toEqual(["mine"]);
  });

  test("takes files for genconf and for the masters", async () => {
    await using fixture = await openFixture();
    const { machines, backend, folder } = fixture;
    const [master, agent] = machines.machines;
    await mkdir(join(folder, "certificates", "inner"), { recursive: true });
    await writeFile(join(folder, "certificates", "inner", "ca.crt"), "certificate\n");
    await writeFile(join(folder, "ca.key"), "key\n", { mode: 0o600 });
    await using cluster = await Cluster.create(backend, { variant: "oss", publicAgents: 0 });
    const installation: Installation = {
      buildArtifact: await artifactIn(folder),
      clusterConfig: cluster.baseConfig,
      ipDetectPath: cluster.ipDetectPath,
      genconfDir: join(folder, "certificates"),
      copyToMaster: [
        { source: join(folder, "ca.key"), target: "/var/lib/cluster/pki/custom_ca.key" },
      ],
    };
    const elsewhere = [{ source: folder, target: "somewhere" }];
    expect(
      (await failureOf(cluster.installFromPath({ ...installation, copyToMaster: elsewhere }))).id,
    ).toBe("bad-usage");
    await cluster.installFromPath(installation);
    expect(await genconf(master!, "inner/ca.crt")).toBe("certificate\n");
    expect(await master!.read("var/lib/cluster/pki/custom_ca.key")).toBe("key\n");
    expect(
      (await stat(join(master!.folder, "var/lib/cluster/pki/custom_ca.key"))).mode & 0o777,
    ).toBe(0o600);
    expect((await failureOf(agent!.read("var/lib/cluster/pki/custom_ca.key"))).message).toContain(
      "ENOENT",
    );
  });

  test("whose installation fails on a node reports it at once, and logs are kept", async () => {
    await using fixture = await openFixture();
    const { backend, folder } = fixture;
    await using cluster = await Cluster.create(backend, { variant: "oss", publicAgents: 0 });
    const clusterConfig = { ...cluster.baseConfig, note: "fail_on: agent" };
    const { ipDetectPath } = cluster;
    await cluster.installFromPath({
      buildArtifact: await artifactIn(folder),
      clusterConfig,
      ipDetectPath,
    });
    const failure = await failureOf(cluster.waitForClusterOss({ skipHttpChecks: true }));
    expect(failure.id).toBe("install-failed");
    expect(failure.message).toContain("disk is full");
    expect(await Bun.file(join(cluster.directory, "agent_0.install.log")).text()).toContain(
      "disk is full",
    );
    expect(await Bun.file(join(cluster.directory, "master_0.console.txt")).text()).toBe(
      "it booted\n",
    );
    const { folder: logs, files } = await cluster.saveLogs({ folder: join(folder, "logs") });
    expect(logs).toBe(join(folder, "logs"));
    expect(files).toContain("agent_0.install.log");
  });

  test("is not found if the search is cancelled, even if only its first master is slow", async () => {
    await using fixture = await openFixture();
    const [master] = fixture.machines.machines;
    const { id } = await Cluster.create(fixture.backend, { variant: "oss", publicAgents: 0 });
    await master!.write("bin/sed", `#!/bin/sh\n: >"$MACHINE/run/asked"\nexec sleep 60\n`);
    await chmod(join(master!.folder, "bin/sed"), 0o755);
    const stop = new AbortController();
    const finding = failureOf(Cluster.find(fixture.backend, id, { cancelSignal: stop.signal }));
    await until("the master is asked for its name servers", () =>
      existsSync(join(master!.folder, "run/asked")),
    );
    stop.abort(new Error("enough"));
    expect((await finding).message).toBe("enough");
  });

  test("is found although its first master hangs, which its base configuration then says", async () => {
    await using fixture = await openFixture();
    const [master] = fixture.machines.machines;
    const { id } = await Cluster.create(fixture.backend, { variant: "oss", publicAgents: 0 });
    await master!.write("bin/sed", "#!/bin/sh\nexec sleep 60\n");
    await chmod(join(master!.folder, "bin/sed"), 0o755);
    const found = await Cluster.find(fixture.backend, id);
    const failure = await failureOf(Promise.try(() => found.baseConfig));
    expect(failure).toMatchObject({ id: "connection-failed", facts: { cluster: id } });
  });

  test("that is gone, or is no longer waited for, is not asked for logs", async () => {
    await using fixture = await openFixture();
    const [master] = fixture.machines.machines;
    const said = (script: string): boolean =>
      master!.commands.some((command) => command.includes(script));
    const cluster = await Cluster.create(fixture.backend, { variant: "oss", publicAgents: 0 });
    const stop = new AbortController();
    const waiting = failureOf(cluster.waitForClusterOss({ cancelSignal: stop.signal }));
    await until("a look at the master", () => said("e2e-readiness"));
    stop.abort(new Error("enough"));
    expect((await waiting).message).toBe("enough");
    const backend = await fixture.backend.open(stop.signal);
    await backend.remove(
      { id: cluster.id, creationId: "", directory: cluster.directory },
      stop.signal,
    );
    expect((await failureOf(cluster.waitForClusterOss())).id).toBe("cluster-not-found");
    expect(said("e2e-logs")).toBe(false);
  });
});

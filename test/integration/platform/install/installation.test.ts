import { stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { installOn } from "../../../../src/cluster/create.ts";
import { launchedMachines } from "../../../../src/library/install-from-path.ts";
import type { NodeRecord, Role } from "../../../../src/model/cluster-record.ts";
import { unmarked } from "../../../../src/outside-text.ts";
import { bootstrapPort } from "../../../../src/platform/install/bootstrap/serve.ts";
import type { InstallPlan } from "../../../../src/platform/install/install-plan.ts";
import { openInstallation } from "../../../../src/platform/install/steps.ts";
import { layouts } from "../../../../src/platform/layouts/find-layout.ts";
import type { TemporaryFolder } from "../../../../src/system/files/private-file.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { factsOfFile } from "../../../support/facts-of-file.ts";
import { failureOf } from "../../../support/failure-of.ts";
import {
  added,
  exampleArtifact,
  exampleCluster,
  examplePlan,
  exampleTraits,
} from "../../../support/install-example.ts";
import {
  type FolderMachine,
  type FolderMachines,
  machinesLack,
  startMachines,
} from "../../../support/install-machine.ts";
import { serveOnLoopback } from "../../../support/loopback-server.ts";
import { scratchFolder } from "../../../support/scratch-folder.ts";
import { until } from "../../../support/until.ts";

const state: { folder?: TemporaryFolder } = {};
const { signal } = new AbortController();

beforeEach(async () => {
  state.folder = await scratchFolder();
});
afterEach(async () => {
  await state.folder?.[Symbol.asyncDispose]();
});

async function artifactFile(variant: string): Promise<string> {
  const path = join(state.folder!.path, `artifact-${variant}.sh`);
  await writeFile(path, exampleArtifact(variant));
  return path;
}

async function install(
  machines: FolderMachines,
  changes: Partial<InstallPlan>,
  installSignal: AbortSignal,
  progress = silentProgress,
): Promise<void> {
  const plan = examplePlan(await artifactFile("oss"), {
    workspaceFolder: state.folder!.path,
    ...changes,
  });
  const { connections } = machines;
  await installOn(
    { connections, clock: systemClock, progress, signal: installSignal },
    launchedMachines(exampleCluster(machines.nodes, plan.variant)),
    openInstallation({ progress }, plan, exampleTraits),
  );
}

const hasInstalled = (machine: FolderMachine): Promise<void> =>
  until(
    "the installation has ended",
    async () => (await machine.read("var/lib/cluster-e2e/install.status")) === "exit 0\n",
  );

/** Distinguishes a unit's own output from the lines that systemd adds to its journal. */
const ownJournal = `#!/bin/sh
case "$*" in *_SYSTEMD_UNIT=*) tail -n 1 "$MACHINE/run/cluster-e2e-bootstrap.log" ;; *) echo "Failed with result 'exit-code'." ;; esac
`;

const three: readonly Role[] = ["master", "agent", "public_agent"];

describe.skipIf(machinesLack !== undefined)("an installation", () => {
  test("runs on every node with its role, and leaves its status", async () => {
    await using machines = await startMachines({ roles: three });
    await install(machines, {}, signal);
    for (const machine of machines.machines) {
      await hasInstalled(machine);
      expect(await machine.read("var/lib/cluster-e2e/install.log")).toBe(
        `arguments: --no-block ${machine.node.role}\n`,
      );
      expect(await machine.read("var/lib/cluster-e2e/layout")).toBe("cluster\n");
    }
  });

  test("needs two commands on a node that is not the first master", async () => {
    await using machines = await startMachines({ roles: three });
    await install(machines, {}, signal);
    expect(machines.machines[1]!.commands.length).toBe(2);
  });

  // Shows R46.
  test("combines base, extra configuration and addresses in the configuration", async () => {
    await using machines = await startMachines({ roles: three });
    await machines.machines[0]!.write(
      "etc/resolv.conf",
      "search example.org\nnameserver 10.0.0.2\nnameserver 10.0.0.3\n",
    );
    await install(machines, { configuration: added({ telemetry_enabled: false }) }, signal);
    const [master, agent, publicAgent] = machines.nodes.map((node) => node.privateAddress!);
    const text = await machines.machines[0]!.read(
      "var/lib/cluster-e2e/installer/genconf/config.yaml",
    );
    expect(Bun.YAML.parse(text)).toMatchObject({
      bootstrap_url: expect.stringMatching(new RegExp(`^http://${master}:18080/[0-9a-f]{32}$`)),
      cluster_name: "example",
      master_list: [master!],
      agent_list: [agent!],
      public_agent_list: [publicAgent!],
      resolvers: ["10.0.0.2", "10.0.0.3"],
      telemetry_enabled: false,
    });
  });

  test("starts again after connections were lost", async () => {
    await using machines = await startMachines({ roles: three });
    const work = install(machines, {}, signal);
    await until(
      "the first command has run",
      async () => machines.machines[0]!.commands.length >= 1,
    );
    for (const machine of machines.machines) machine.cutConnections();
    await work;
    for (const machine of machines.machines) await hasInstalled(machine);
  });

  test("is started once, however often it is requested", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    await install(machines, {}, signal);
    const [machine] = machines.machines;
    await hasInstalled(machine!);
    const before = (await stat(join(machine!.folder, "var/lib/cluster-e2e/install.log"))).mtimeMs;
    await install(machines, {}, signal);
    expect((await stat(join(machine!.folder, "var/lib/cluster-e2e/install.log"))).mtimeMs).toBe(
      before,
    );
  });

  test("copies files only to masters, with their modes, and creates their folders", async () => {
    await using machines = await startMachines({ roles: ["master", "agent"] });
    const source = join(state.folder!.path, "custom_ca.key");
    await writeFile(source, "key text");
    const target = "/var/lib/cluster/pki/private/custom_ca.key";
    const copy = { ...(await factsOfFile(source)), target, mode: 0o600 };
    await install(machines, { copyToMaster: [copy] }, signal);
    const [master, agent] = machines.machines;
    expect(await master!.read("var/lib/cluster/pki/private/custom_ca.key")).toBe("key text");
    const place = join(master!.folder, "var/lib/cluster/pki/private/custom_ca.key");
    expect(((await stat(place)).mode & 0o777).toString(8)).toBe("600");
    expect(agent!.commands.some((command) => command.includes("custom_ca"))).toBe(false);
  });

  test("uses the user's ip-detect instead of the backend's", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const source = join(state.folder!.path, "ip-detect");
    await writeFile(source, "#!/bin/sh\necho own\n");
    const own = { ...(await factsOfFile(source)), target: "ip-detect", mode: 0o755 };
    await install(machines, { genconfFiles: [own] }, signal);
    expect(
      await machines.machines[0]!.read("var/lib/cluster-e2e/installer/genconf/ip-detect"),
    ).toContain("own");
  });

  test("shows the artifact's own output if it rejects the configuration", async () => {
    await using machines = await startMachines({ roles: three });
    const error = await failureOf(
      install(machines, { configuration: added({ refuse_me: 1 }) }, signal),
    );
    const output = ["refuse_me: is not a key", "resolvers: must be a list"];
    expect(error).toMatchObject({ id: "configuration-refused", facts: { output } });
    for (const line of output) expect(error.message).toContain(line);
    const started = machines.machines
      .flatMap((machine) => machine.commands)
      .filter((line) => line.includes("--genconf"));
    expect(started.length).toBe(1);
  });

  const dfOf = (freeKilobytes: number): string =>
    `#!/bin/sh\necho 'Filesystem 1024-blocks Used Available Capacity Mounted on'\necho '/dev/a b 9000000 8000000 ${freeKilobytes} 99% /'\n`;

  test.each([
    ["the log is empty", { df: dfOf(0) }, ""],
    ["the artifact says so", { df: dfOf(90_000_000) }, "tar: write error: No space left on device"],
  ])(
    "distinguishes a full disk from a rejected configuration: %s",
    async (_name, programs, said) => {
      const path = join(state.folder!.path, "full.sh");
      await writeFile(
        path,
        exampleArtifact("oss").replace(
          /--genconf\)/,
          `--genconf) echo '${said}'; exit 2 ;; --never)`,
        ),
      );
      await using machines = await startMachines({ roles: ["master"], programs });
      const error = await failureOf(
        install(machines, { artifact: { kind: "file", path, shown: path } }, signal),
      );
      expect(error).toMatchObject({ id: "install-failed", facts: { node: "master_0" } });
      expect(error.message).toContain("disk is full");
    },
  );

  test("names the port if another program on the first master uses it", async () => {
    await using machines = await startMachines({
      roles: ["master"],
      programs: { journalctl: ownJournal },
    });
    const [{ ssh }] = machines.nodes as [NodeRecord];
    using taken = Bun.listen({
      hostname: ssh.host,
      port: bootstrapPort(layouts),
      socket: { data: () => {} },
    });
    const error = await failureOf(install(machines, {}, signal));
    expect(error.message).toContain("master_0: ");
    expect(error.message).toContain(`port ${taken.port} of ${ssh.host} is taken`);
  });

  // Shows R22.
  test("fails before anything is installed if the artifact has the other variant", async () => {
    await using machines = await startMachines({ roles: three });
    const artifact = await artifactFile("ee");
    const error = await failureOf(
      install(machines, { artifact: { kind: "file", path: artifact, shown: artifact } }, signal),
    );
    expect(error.id).toBe("variant-mismatch");
    expect(
      await Bun.file(
        join(machines.machines[0]!.folder, "var/lib/cluster-e2e/installer/genconf"),
      ).exists(),
    ).toBe(false);
  });

  test("rejects an artifact with a wrong checksum", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const error = await failureOf(install(machines, { sha256: "0".repeat(64) }, signal));
    expect(error.id).toBe("artifact-invalid");
    expect(error.message).toContain("SHA-256");
  });

  test("names the node that could not be prepared, and why", async () => {
    await using machines = await startMachines({
      roles: three,
      programs: { systemctl: "#!/bin/sh\necho 'systemd 187'\n" },
    });
    const error = await failureOf(install(machines, {}, signal));
    expect(error.id).toBe("install-failed");
    expect(error.message).toMatch(
      /^Cannot prepare \w+_0: systemd is too old: it is version 187, but at least 200 is required\.$/,
    );
  });

  // Shows R30.
  test("fails to enforce SELinux on a node without it", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    const error = await failureOf(install(machines, { selinuxEnforcing: true }, signal));
    expect(error.message).toMatch(/^master_0: .*no SELinux/);
  });

  test.each([
    ["enterprise", "1.11", {}, [expect.stringContaining("Enterprise 1.11 needs a license key")]],
    ["enterprise", "1.10", {}, []],
    ["enterprise", "1.11", { licenseKey: "a key" }, []],
    ["enterprise", "1.11", { values: { license_key_contents: "a key" } }, []],
    ["oss", "1.11", {}, []],
  ] as const)(
    "warns about a missing license: %s %s with %j",
    async (variant, version, changes, expected) => {
      await using machines = await startMachines({ roles: ["master"] });
      const path = join(state.folder!.path, "artifact.sh");
      await writeFile(
        path,
        exampleArtifact(variant).replaceAll('"version": "1.0"', `"version": "${version}"`),
      );
      const warnings: string[] = [];
      const progress = {
        ...silentProgress,
        warn: (text: string) => void warnings.push(unmarked(text)),
      };
      const artifact = { kind: "file", path, shown: path } as const;
      await install(
        machines,
        { variant, artifact, configuration: { ...added({}), ...changes } },
        signal,
        progress,
      );
      expect(warnings).toEqual([...expected]);
    },
  );

  test("rejects with the abort's reason, and leaves nothing running", async () => {
    await using machines = await startMachines({
      roles: ["master"],
      programs: { bash: "#!/bin/sh\nsleep 60\n" },
    });
    const controller = new AbortController();
    const work = install(machines, {}, controller.signal).then(
      () => undefined,
      (error: unknown) => error,
    );
    await until("the version is asked for", async () =>
      machines.machines[0]!.commands.some((line) => line.includes("--version")),
    );
    const reason = new Error("enough");
    controller.abort(reason);
    expect(await work).toBe(reason);
  });
});

describe.skipIf(machinesLack !== undefined)("an artifact on the web", () => {
  const serve = (fails: (request: Request) => boolean, host = "127.0.0.1") =>
    serveOnLoopback(
      (request) =>
        fails(request) ? new Response("no", { status: 403 }) : new Response(exampleArtifact("oss")),
      { host },
    );
  const isNode = (request: Request): boolean =>
    request.headers.get("user-agent")?.startsWith("curl") === true;
  /** A name other than loopback's, so that the node fetches it. */
  const throughName = {
    curl: '#!/bin/sh\nexec /usr/bin/curl --interface "$(cat "$MACHINE/address")" --resolve "artifacts.example:$(cat "$MACHINE/../port"):127.0.0.1" "$@"\n',
  };

  // Shows R123.
  test("is fetched by the first master itself, with its URL in no argument list", async () => {
    await using machines = await startMachines({ roles: ["master"], programs: throughName });
    using server = serve((request) => !isNode(request), "artifacts.example");
    await writeFile(join(machines.machines[0]!.folder, "../port"), String(server.port));
    const url = `http://artifacts.example:${server.port}/a.sh?signature=verysecretvalue`;
    await install(
      machines,
      { artifact: { kind: "url", url, shown: "http://artifacts.example/a.sh?***" } },
      signal,
    );
    expect(machines.machines[0]!.commands.join("\n")).not.toContain("verysecretvalue");
    await hasInstalled(machines.machines[0]!);
  });

  test("goes through this computer if the node cannot fetch it", async () => {
    await using machines = await startMachines({ roles: ["master"] });
    using server = serve(isNode);
    const url = `http://127.0.0.1:${server.port}/a.sh`;
    await install(machines, { artifact: { kind: "url", url, shown: url } }, signal);
    await hasInstalled(machines.machines[0]!);
    expect([
      ...new Bun.Glob("cluster-e2e-*").scanSync({ cwd: state.folder!.path, onlyFiles: false }),
    ]).toEqual([]);
  });
});

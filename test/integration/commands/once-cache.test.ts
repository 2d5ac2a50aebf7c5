/** `once --cache` on machines in folders: the installation really runs; a snapshot is the machines as they are, and a file of it names it. */
import { describe, expect, test } from "bun:test";
import { mkdir, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Backend, CreationRequest, Snapshots } from "../../../src/backend/contract.ts";
import type { Power } from "../../../src/backend/power.ts";
import { assertSnapshot, unusableFile } from "../../../src/backend/shared/cluster-file.ts";
import { assertWritable } from "../../../src/backend/shared/write-cluster-file.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import { ClusterError } from "../../../src/errors.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { folderBackend } from "../../support/folder-backend.ts";
import { exampleArtifact } from "../../support/install-example.ts";
import { type FolderMachine, machinesLack, startMachines } from "../../support/install-machine.ts";
import { junitOutcomes } from "../../support/junit.ts";
import { putTogether, takeApart } from "../../support/rewrite-cluster-file.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { startWeb } from "../platform/readiness/readiness-web.ts";

const installed = "etc/systemd/system/cluster.target";

async function removePlatform(machine: FolderMachine): Promise<void> {
  await Bun.$`rm -rf ${join(machine.folder, "opt/cluster")} ${join(machine.folder, installed)} ${join(machine.folder, "var/lib/cluster-e2e")}`;
}

/** A cluster's file that holds the snapshot with this name, and nothing else. */
const fileOf = (snapshot: string): Buffer =>
  putTogether(
    {
      format: "cluster-e2e-cluster",
      formatVersion: 1,
      backend: "vm",
      createdBy: "1",
      facts: { clusterId: "mine", snapshot },
      parts: [],
    },
    [],
  );

async function snapshotIn(path: string): Promise<string> {
  try {
    const { manifest } = await takeApart(path);
    return (manifest.facts as { readonly snapshot: string }).snapshot;
  } catch {
    throw unusableFile(path, "is damaged");
  }
}

interface Told {
  /** What happens to the machines between a save and a copy. */
  readonly betweenRuns: () => Promise<void>;
  readonly whileInstalling: () => Promise<void>;
  readonly whileSaving: () => Promise<void>;
  readonly canSave: () => boolean;
}

/** A backend with snapshots as files, and how its clusters came to be, in order. */
function savingBackend(
  plain: Backend<undefined>,
  machines: readonly FolderMachine[],
  { betweenRuns, whileInstalling, whileSaving, canSave }: Told,
) {
  const happened: string[] = [];
  const snapshots: Snapshots = {
    list: async () => [],
    create: async () => {},
    restore: async () => {},
    delete: async (_cluster, name) => void happened.push(`deleted ${name}`),
    holdsMemory: true,
    save: async (_cluster, name, { path, replaces }) => {
      if (!canSave()) throw new ClusterError("capacity-lacking", "The disk is full.", {});
      await whileSaving();
      await assertWritable(path, replaces);
      await writeFile(path, fileOf(name));
    },
    planCopy: async (request, signal) => {
      if (!("file" in request)) throw new Error(`${request.snapshot} is in a file`);
      const { clusterId, file } = request;
      const path = "path" in file.location ? file.location.path : "";
      assertSnapshot(path, file, await snapshotIn(path));
      await betweenRuns();
      happened.push("copied");
      return plain.plan({ clusterId, variant: "oss" } as CreationRequest<undefined>, signal);
    },
  };
  const plan: Backend<undefined>["plan"] = async (request, signal) => {
    await Promise.all(machines.map(removePlatform));
    happened.push("installed");
    await whileInstalling();
    return plain.plan(request, signal);
  };
  // The default lifetime of a VM is allowed. It ends none here.
  const removeExpired = async (): Promise<void> => {};
  const local = { snapshots, power: {} as Power, removeExpired };
  return { backend: { ...plain, name: "vm" as const, local, plan }, happened };
}

async function openCache() {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles: ["master", "agent"] });
  const web = startWeb({ "/nodes": () => ({ status: 200, body: [{}] }) }, undefined);
  const { backend: plain } = folderBackend({ ...machines, nodes: machines.nodes.map(web.of) });
  const state = {
    canSave: true,
    betweenRuns: async (): Promise<void> => {},
    whileInstalling: async (): Promise<void> => {},
    whileSaving: async (): Promise<void> => {},
  };
  const told = {
    betweenRuns: async () => state.betweenRuns(),
    whileInstalling: async () => state.whileInstalling(),
    whileSaving: async () => state.whileSaving(),
    canSave: () => state.canSave,
  };
  const { backend, happened } = savingBackend(plain, machines.machines, told);
  const at = (name: string): string => join(scratch.path, name);
  await writeFile(at("artifact.sh"), exampleArtifact("oss"));
  await writeFile(
    at("ssh"),
    `#!/bin/sh
echo ran >>${at("ran")}
status=$(cat ${at("status")} 2>/dev/null || echo 0)
# Like a node, it proves that the command has begun and how it has ended. Its last argument is the line for the node.
for line; do :; done
token=\${line##* sh }
token=\${token%% *}
printf '\\036%s\\n' "$token begun"
printf '\\036%s\\n' "$token begun" "$token end $status" >&2
exit "$status"
`,
    { mode: 0o755 },
  );
  const environment = {
    XDG_STATE_HOME: at("state"),
    TMPDIR: scratch.path,
    PATH: `${scratch.path}:/usr/bin:/bin`,
  };
  return {
    at,
    state,
    happened,
    machines: machines.machines,
    once: async (words = "") => {
      happened.length = 0;
      const line = `once --variant oss --public-agents 0 -c mine --cache cache/file --junit junit.xml ${words} artifact.sh -- true`;
      const setting = {
        kind: vmKind,
        backend,
        nowMs: 0,
        clock: systemClock,
        cwd: scratch.path,
        environment,
      };
      return runCommandLine(line.replaceAll(/ +/g, " "), setting);
    },
    [Symbol.asyncDispose]: async () => {
      await web[Symbol.asyncDispose]();
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

const passed = {
  "The cluster is created": "passed",
  "master_0 is ready": "passed",
  "agent_0 is ready": "passed",
  "The platform is ready": "passed",
  "The command succeeds": "passed",
};

describe.skipIf(machinesLack !== undefined)(`once with a cache (${machinesLack ?? "here"})`, () => {
  test("installs and saves the cluster first, and from then on starts from the file, until something else is wanted", async () => {
    await using opened = await openCache();
    const saved = ["installed", expect.stringMatching(/^deleted cached-[0-9a-f]{32}$/)];
    expect((await opened.once()).status).toBe(0);
    expect(opened.happened).toEqual(saved);
    const again = await opened.once("--timeout 30m");
    expect(opened.happened).toEqual(["copied"]);
    expect(again.told.join()).toContain(
      `Cluster "mine" has been created, from ${opened.at("cache/file")}`,
    );
    expect(junitOutcomes(await readFile(opened.at("junit.xml")))).toEqual(passed);
    await opened.once("--agents 1");
    expect(opened.happened).toEqual(saved);
    await opened.once("--agents 1");
    expect(opened.happened).toEqual(["copied"]);
    await writeFile(opened.at("artifact.sh"), `${exampleArtifact("oss")}# another build\n`);
    await opened.once("--agents 1");
    expect(opened.happened).toEqual(saved);
  });

  // Shows R122.
  test.each([
    ["is damaged", async ({ at }) => truncate(at("cache/file"), 200)],
    [
      "holds another cluster",
      async ({ at }) => writeFile(at("cache/file"), fileOf(`cached-${"0".repeat(32)}`)),
    ],
    [
      "does not become ready",
      async ({ state, machines }) => {
        state.betweenRuns = async () =>
          machines[1]!.write("var/lib/cluster-e2e/install.status", "exit 3\n");
      },
    ],
  ] satisfies readonly [
    string,
    (opened: Awaited<ReturnType<typeof openCache>>) => Promise<void>,
  ][])("a file that %s costs only time, and is replaced", async (_name, spoil) => {
    await using opened = await openCache();
    await opened.once();
    const before = await readFile(opened.at("cache/file"), "utf8");
    await spoil(opened);
    const ran = await opened.once("--keep-on-failure --save-on-failure failed");
    expect(ran.status).toBe(0);
    expect(opened.happened.filter((text) => text !== "copied")).toHaveLength(2);
    expect(opened.happened.at(-2)).toBe("installed");
    expect(ran.told.join("\n")).toContain("The platform is installed instead.");
    expect(ran.told.join("\n")).not.toContain("Kept as requested");
    expect(await Bun.file(opened.at("failed")).exists()).toBe(false);
    expect(junitOutcomes(await readFile(opened.at("junit.xml")))).toEqual(passed);
    expect(await readFile(opened.at("cache/file"), "utf8")).toBe(before);
  });

  // Shows R122.
  test.each([
    ["a text", "a thesis, and no backup of it"],
    ["an empty file", ""],
    ["a cluster that the user saved", fileOf("installed")],
    ["a cluster with a similar name", fileOf("cached-yesterday")],
    ["a damaged cluster that the user saved", fileOf("installed").subarray(0, 200)],
  ])("what no earlier run put there is kept: %s", async (_name, bytes) => {
    await using opened = await openCache();
    await mkdir(opened.at("cache"));
    await writeFile(opened.at("cache/file"), bytes);
    expect(await failureOf(opened.once())).toMatchObject({
      id: "bad-usage",
      hint: expect.stringContaining("`cache`"),
    });
    expect(opened.happened).toEqual([]);
    expect(await readFile(opened.at("cache/file"))).toEqual(Buffer.from(bytes));
  });

  test("a file that appears at the path during the installation is kept", async () => {
    await using opened = await openCache();
    opened.state.whileInstalling = async () => {
      await mkdir(opened.at("cache"));
      await writeFile(opened.at("cache/file"), fileOf("mine"));
    };
    const ran = await opened.once();
    expect(ran.status).toBe(0);
    expect(ran.told.join("\n")).toContain("Warning: The cluster could not be saved: ");
    expect(await snapshotIn(opened.at("cache/file"))).toBe("mine");
  });

  test("a file that appears at the path while the cluster is saved is kept", async () => {
    await using opened = await openCache();
    opened.state.whileSaving = async () => writeFile(opened.at("cache/file"), fileOf("mine"));
    const ran = await opened.once();
    expect(ran.status).toBe(0);
    expect(ran.told.join("\n")).toContain("Warning: The cluster could not be saved: ");
    expect(await snapshotIn(opened.at("cache/file"))).toBe("mine");
  });

  test("a command that fails on a cluster from the file fails once", async () => {
    await using opened = await openCache();
    await opened.once();
    await writeFile(opened.at("status"), "7");
    await writeFile(opened.at("ran"), "");
    expect((await opened.once()).status).toBe(7);
    expect(opened.happened).toEqual(["copied"]);
    expect(await readFile(opened.at("ran"), "utf8")).toBe("ran\n");
  });

  test("a cluster on which the command fails is saved if that is wanted, and the file's use is named", async () => {
    await using opened = await openCache();
    await writeFile(opened.at("status"), "7");
    const ran = await opened.once("--save-on-failure failed/file --report report.html");
    expect(ran.status).toBe(7);
    expect(await readFile(opened.at("report.html"), "utf8")).toContain(
      `cluster-vm create --from ${opened.at("failed/file")}`,
    );
    expect(await snapshotIn(opened.at("failed/file"))).toBe("failed");
    expect(ran.told).toContain("The command exited with status 7.");
    expect(ran.told).toContain(
      `Bring the cluster back as it was: cluster-vm create --from ${opened.at("failed/file")}`,
    );
    opened.state.canSave = false;
    const again = await opened.once("--save-on-failure failed/other --report report.html");
    expect(again.status).toBe(7);
    expect(await readFile(opened.at("report.html"), "utf8")).not.toContain("create --from");
    expect(again.told).toContain("Warning: The cluster could not be saved: The disk is full.");
    expect(again.told.join("\n")).not.toContain("create --from");
  });

  test("recipients that age does not accept are refused before anything is installed", async () => {
    await using opened = await openCache();
    await writeFile(opened.at("age"), "#!/bin/sh\necho unknown recipient type >&2\nexit 1\n", {
      mode: 0o755,
    });
    const failure = await failureOf(opened.once("--save-on-failure failed --recipient nobody"));
    expect(failure).toMatchObject({
      id: "bad-usage",
      message: expect.stringContaining("unknown recipient type"),
    });
    expect(opened.happened).toEqual([]);
  });

  test("a cluster that can't be saved is used all the same", async () => {
    await using opened = await openCache();
    opened.state.canSave = false;
    const ran = await opened.once();
    expect(ran.status).toBe(0);
    expect(ran.told.join("\n")).toContain(
      "Warning: The cluster could not be saved: The disk is full.",
    );
    expect(await Bun.file(opened.at("cache/file")).exists()).toBe(false);
  });
});

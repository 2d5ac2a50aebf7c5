/** `create` on machines in folders, where the installation really runs. */
import { describe, expect, test } from "bun:test";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { systemClock } from "../../../src/system/runtime.ts";
import { failureOf } from "../../support/failure-of.ts";
import { folderBackend } from "../../support/folder-backend.ts";
import { exampleArtifact } from "../../support/install-example.ts";
import { machinesLack, startMachines } from "../../support/install-machine.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";
import { startWeb } from "../platform/readiness/readiness-web.ts";
import { neverAborted } from "../../support/never-aborted.ts";

async function openCreation() {
  const scratch = await scratchFolder();
  const machines = await startMachines({ roles: ["master", "agent"] });
  const web = startWeb({ "/nodes": () => ({ status: 200, body: [{}] }) }, undefined);
  const { backend, destroyed } = folderBackend({ ...machines, nodes: machines.nodes.map(web.of) });
  await writeFile(join(scratch.path, "artifact.sh"), exampleArtifact("oss"));
  await writeFile(join(scratch.path, "ssh"), "#!/bin/sh\n", { mode: 0o755 });
  const environment = {
    XDG_STATE_HOME: join(scratch.path, "state"),
    TMPDIR: scratch.path,
    PATH: scratch.path,
  };
  const setting = { kind: containerKind, backend, nowMs: 0, clock: systemClock, cwd: scratch.path };
  return {
    folder: scratch.path,
    backend,
    destroyed,
    web,
    create: async (words: string, more: Readonly<Record<string, string>> = {}) =>
      runCommandLine(`create --variant oss --public-agents 0 -c mine ${words} artifact.sh`, {
        ...setting,
        environment: { ...environment, ...more },
      }),
    [Symbol.asyncDispose]: async () => {
      await web[Symbol.asyncDispose]();
      await machines[Symbol.asyncDispose]();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

describe.skipIf(machinesLack !== undefined)(`a creation (${machinesLack ?? "here"})`, () => {
  test("prints the id when the installation has started, and the next command with the place", async () => {
    await using opened = await openCreation();
    const summary = join(opened.folder, "summary.md");
    const ran = await opened.create("--engine podman --summary", { GITHUB_STEP_SUMMARY: summary });
    const next = "cluster-container wait --cluster-id mine --engine podman";
    expect(ran.stdout).toBe("mine");
    expect(ran.data).toMatchObject({
      cluster: { id: "mine", nodes: [{ id: "i-master-0" }, { id: "i-agent-0" }] },
      next,
    });
    expect(ran.data).toMatchObject({ phases: [{ title: "Launch", seconds: 1.3 }] });
    expect(ran.told).toContain("The installation has started: 1 master, 1 agent, 0 public agents.");
    expect(ran.told.at(-1)).toBe(`Next: ${next}`);
    expect(ran.told.join("\n")).not.toMatch(/terminate automatically|cost/);
    const markdown = await readFile(summary, "utf8");
    expect(markdown).toStartWith("### Cluster created\n\n| Cluster | `mine` |\n");
    expect(markdown).toContain("| Phases | `Launch 1.3 s` |");
    expect(opened.destroyed).toEqual([]);
  });

  test("with --replace, the cluster of that id is removed first, unless nothing is to be done", async () => {
    await using opened = await openCreation();
    await opened.create("--replace");
    expect(opened.destroyed).toEqual([]);
    await opened.create("--replace --dry-run");
    expect(opened.destroyed).toEqual([]);
    // These machines can't be installed twice.
    await opened.create("--replace").catch(() => {});
    expect(opened.destroyed[0]).toBe("mine");
  });

  test("with --wait, says when the cluster is ready", async () => {
    await using opened = await openCreation();
    const summary = join(opened.folder, "summary.md");
    const ran = await opened.create("--wait --timeout 2m --summary", {
      GITHUB_STEP_SUMMARY: summary,
    });
    expect(ran).toMatchObject({ status: 0, stdout: "mine" });
    expect(ran.told.at(-2)).toStartWith('Cluster "mine" is ready after ');
    expect(ran.told.at(-1)).toBe("Next: cluster-container run --cluster-id mine bash");
    expect((await readFile(summary, "utf8")).match(/^### .*$/gm)).toEqual(["### Cluster ready"]);
    expect(opened.web.requests).not.toEqual([]);
  });

  test("with --dry-run prints the plan and creates nothing", async () => {
    await using opened = await openCreation();
    const { stdout, data } = await opened.create("--dry-run");
    expect(stdout).not.toBe("mine");
    expect(data).toHaveProperty("plan");
    expect(await opened.backend.list(neverAborted)).toEqual([]);
  });

  test.each([
    ["a file in the place of its parent", "/dev/null/state", "not a directory"],
    ["a disk that takes no folder", "/proc", "no such file or directory"],
    ["a path that ssh can't have", '/tmp/"', "to ssh"],
  ])("with --dry-run, %s is refused as without", async (_, state, reason) => {
    await using opened = await openCreation();
    for (const words of ["--dry-run", "--agents 1"])
      expect(await failureOf(opened.create(words, { XDG_STATE_HOME: state }))).toMatchObject({
        id: "machine-not-set-up",
        message: expect.stringContaining(reason),
      });
    expect(await opened.backend.list(neverAborted)).toEqual([]);
  });

  test("rejects an artifact of the other variant before anything is created", async () => {
    await using opened = await openCreation();
    await writeFile(join(opened.folder, "artifact.sh"), exampleArtifact("enterprise"));
    const failure = await failureOf(opened.create("--agents 1"));
    expect(failure).toMatchObject({
      id: "variant-mismatch",
      message: expect.stringContaining("enterprise"),
    });
    expect(await opened.backend.list(neverAborted)).toEqual([]);
  });
});

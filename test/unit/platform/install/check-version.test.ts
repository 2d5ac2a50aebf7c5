import { layoutOf } from "../../../support/layout-of.ts";
import { expect, test } from "bun:test";
import type { PhaseContext } from "../../../../src/platform/install/phase.ts";
import type { Connection } from "../../../../src/ssh/connection/connection.ts";
import { failureOf } from "../../../support/failure-of.ts";
import { ClusterError, type ErrorId } from "../../../../src/errors.ts";
import { checkVersion, endedBadly } from "../../../../src/platform/install/fetch-artifact.ts";
import type { InstallPlan } from "../../../../src/platform/install/install-plan.ts";
import {
  openInstallation,
  checkVersion as versionStep,
} from "../../../../src/platform/install/steps.ts";
import type { NodeRecord } from "../../../../src/model/cluster-record.ts";
import type { ConnectionPool } from "../../../../src/ssh/connection/connection-pool.ts";
import { systemClock } from "../../../../src/system/runtime.ts";
import { silentProgress } from "../../../support/silent-progress.ts";
import { examplePlan, exampleTraits } from "../../../support/install-example.ts";
import { installWork } from "../../../../src/platform/install-paths.ts";
import { neverAborted } from "../../../support/never-aborted.ts";

/** Checks the version of an artifact whose script ends like this on the node. */
async function check(result: {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}) {
  const connection = { run: async () => result } as unknown as Connection;
  const request = {
    variant: "oss",
    sha256: "AB".repeat(32),
    shown: "x.sh",
    paths: installWork,
  } as const;
  const context = { connection } as PhaseContext;
  return checkVersion(request).run(context, neverAborted);
}

test("the artifact's version is read from its output", async () => {
  const stdout = 'Loaded image: stray line\n{"variant": "oss", "version": "1.0"}\n';
  expect(await check({ status: 0, stdout, stderr: "" })).toMatchObject({ variant: "oss" });
});

test.each([
  [
    90,
    `${"cd".repeat(32)}\n`,
    "",
    `has the SHA-256 checksum ${"cd".repeat(32)}, not ${"ab".repeat(32)}.`,
  ],
  [1, "starting\n", "no docker\n", "failed to print its version with --version: no docker."],
  [1, "no docker\n", "", "failed to print its version with --version: no docker."],
])("a script that ends with %d and %j is an error", async (status, stdout, stderr, text) => {
  const error = await failureOf(check({ status, stdout, stderr }));
  expect(error).toMatchObject({ id: "artifact-invalid", facts: { status, artifact: "x.sh" } });
  expect(error.message).toEndWith(text);
  expect(JSON.stringify(error.facts)).toContain((stderr || stdout).trim());
});

test("of a long output, the last lines are kept", async () => {
  const lines = Array.from({ length: 30 }, (_, index) => `line ${index}`);
  const error = await failureOf(check({ status: 1, stdout: "", stderr: `${lines.join("\n")}\n` }));
  expect(error.facts?.["output"]).toEqual(lines.slice(10));
});

const failure = (id: ErrorId, status: number | undefined): ClusterError =>
  new ClusterError(id, "It failed.", { facts: { ...(status !== undefined && { status }) } });

// Only an artifact that ran and failed may succeed once the node has Docker.
test.each([
  ["an artifact that ran and failed", true, failure("artifact-invalid", 1)],
  ["an artifact that lacks a program", true, failure("artifact-invalid", 127)],
  ["a file with another checksum", false, failure("artifact-invalid", 90)],
  ["a file that isn't an artifact", false, failure("artifact-invalid", undefined)],
  ["a command that failed on the node", false, failure("remote-command-failed", 1)],
  ["a bug", false, new Error("status 1")],
])("%s has ended badly: %p", (_, hasEndedBadly, error) => {
  expect(endedBadly(error)).toBe(hasEndedBadly);
});

/** Checks the version of an artifact that fails with this status until its node has Docker. Resolves with what became of it, and what ran. */
async function checkWithoutDocker(plan: Partial<InstallPlan>, status = 1) {
  const ran: string[] = [];
  const run = async ({ argv }: { readonly argv: readonly string[] }) => {
    const name = argv.find((word) => word.startsWith("e2e-"))!;
    ran.push(name);
    const isReady = name === "e2e-prepare" || ran.includes("e2e-prepare");
    return {
      status: isReady ? 0 : status,
      stdout: '{"variant": "oss", "version": "1.9"}',
      stderr: "",
    };
  };
  const connections = { connect: async () => ({ run }) } as unknown as ConnectionPool;
  const runtime = { connections, clock: systemClock, progress: silentProgress };
  const work = { ...runtime, signal: neverAborted };
  const installation = openInstallation(work, examplePlan("/a.sh", plan), exampleTraits);
  const node = { id: "i-1", role: "master", index: 0 } as NodeRecord;
  const checking = versionStep(work, installation, node);
  return [await checking.catch((error: unknown) => error), ran];
}

test("where only running an artifact shows its layout, the node gets Docker if it can't run, and it runs again", async () => {
  const found = { layout: { name: "dcos" }, version: { version: "1.9", variant: "oss" } };
  const ran = ["e2e-version", "e2e-prepare", "e2e-version"];
  expect(await checkWithoutDocker({ layout: undefined })).toMatchObject([found, ran]);
  const failed = { id: "artifact-invalid" };
  expect(await checkWithoutDocker({ layout: layoutOf("cluster") })).toMatchObject([
    failed,
    ["e2e-version"],
  ]);
  expect(await checkWithoutDocker({ layout: undefined }, 90)).toMatchObject([
    failed,
    ["e2e-version"],
  ]);
});

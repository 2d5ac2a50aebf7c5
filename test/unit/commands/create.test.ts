import type { Backend } from "../../../src/backend/contract.ts";
import type { CopyRequest } from "../../../src/backend/contract.ts";
import { expect, test } from "bun:test";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cloudKind } from "../../../src/backend/cloud/cloud-kind.ts";
import { containerKind } from "../../../src/backend/container/container-kind.ts";
import { vmKind } from "../../../src/backend/vm/vm-kind.ts";
import { ClusterError } from "../../../src/errors.ts";
import { exampleCluster } from "../../support/install-example.ts";
import { failureOf } from "../../support/failure-of.ts";
import { runCommandLine } from "../../support/run-command.ts";
import { scratchFolder } from "../../support/scratch-folder.ts";

/** Runs `create` with a backend that must not be called. Returns the usage error. */
const rejected = (words: string) =>
  failureOf(
    runCommandLine(`create ${words} /nowhere/a.sh`, { kind: containerKind, backend: {}, nowMs: 0 }),
  );

test.each([
  ["--variant oss --superuser-password x", "--superuser-password: only allowed with --wait"],
  [`--variant oss --sha256 ${"ab".repeat(32)}`, "--sha256: only allowed with a file in --from"],
  [
    `--from default:installed --sha256 ${"ab".repeat(32)}`,
    "--sha256: only allowed with a file in --from",
  ],
  ["--from https://h.example/c.zst", "--from: a URL requires --sha256"],
  ["--variant oss --summary --dry-run", "--summary: cannot be combined with --dry-run"],
  [
    "--variant oss --masters 9 --agents 600 --public-agents 600",
    "--masters, --agents, --public-agents: ",
  ],
  [
    "--variant oss --enable-selinux-enforcing --linux-distribution debian-12",
    "--enable-selinux-enforcing: ",
  ],
])("create %s is rejected before anything is opened", async (words, problem) => {
  expect((await rejected(words)).message).toContain(problem);
});

test("SELinux may be enforced where the distribution has it", async () => {
  const words =
    "create --variant oss --enable-selinux-enforcing --linux-distribution centos-7 /nowhere/a.sh";
  const failure = await failureOf(
    runCommandLine(words, { kind: cloudKind, backend: {}, nowMs: 0 }),
  );
  expect(failure.message).not.toContain("--enable-selinux-enforcing");
});

const summarizeCopy = async ({ clusterId, source, snapshot, lifetimeMs }: CopyRequest) => ({
  summary: {
    lines: [["Cluster", clusterId]],
    facts: { cluster: clusterId, from: `${source.id}:${snapshot}`, lifetimeMs },
  },
});

/** Runs `create --from` with the cluster `default`, of which a copy can only be planned. */
async function copy(words: string, snapshots: object = { planCopy: summarizeCopy }, hasSsh = true) {
  await using folder = await scratchFolder();
  if (hasSsh) await writeFile(join(folder.path, "ssh"), "#!/bin/sh\n", { mode: 0o755 });
  return await runCommandLine(`create --from default:installed -c second ${words}`, {
    kind: vmKind,
    backend: {
      name: "vm",
      find: async (id: string) => ({ ...exampleCluster([], "oss"), id }),
      local: { removeExpired: async () => {}, snapshots },
    } as unknown as Backend<unknown>,
    nowMs: 0,
    environment: { XDG_STATE_HOME: folder.path, PATH: folder.path },
  });
}

test("the plan of a copy names both clusters, and needs no password", async () => {
  const { stdout, data } = await copy("--dry-run --wait");
  expect(stdout.split(/ {2,}/)).toEqual(["Cluster", "second"]);
  expect(data).toEqual({ plan: { cluster: "second", from: "default:installed" } });
});

test("a copy may have a lifetime of its own; in the cloud there is no such option", async () => {
  expect((await copy("--dry-run --lifetime 1h30m")).data).toMatchObject({
    plan: { lifetimeMs: 5_400_000 },
  });
  expect((await failureOf(copy("--lifetime soon"))).message).toContain("--lifetime: ");
  const words = "create --variant oss --lifetime 1h /nowhere/a.sh";
  const failure = await failureOf(
    runCommandLine(words, { kind: cloudKind, backend: {}, nowMs: 0 }),
  );
  expect(failure.message).toContain("--lifetime");
});

const gone = new ClusterError("snapshot-not-found", "It is gone.");

// Shows R66.
test("a dash as the superuser's password asks for it, if it is needed", async () => {
  const failureWith = (words: string) =>
    failureOf(copy(words, { planCopy: () => Promise.reject(gone) }));
  expect((await failureWith("--wait --superuser-password -")).message).toBe(
    "no answer to Superuser password: ",
  );
  expect((await failureWith("--wait --superuser-password secret")).message).toBe("It is gone.");
  expect((await failureWith("--wait --superuser-password - --dry-run")).message).toBe(
    "It is gone.",
  );
});

test("without ssh on the PATH, nothing is created", async () => {
  const planCopy = async (): Promise<never> => Promise.reject(new Error("not used"));
  expect(await failureOf(copy("--wait", { planCopy }, false))).toMatchObject({
    id: "machine-not-set-up",
  });
  expect((await copy("--dry-run", undefined, false)).status).toBe(0);
});

test("two copies to one path of the masters are refused", async () => {
  const copies = "--copy-to-master /etc/hostname:/a/b --copy-to-master /etc/hosts:/a/../a/b";
  expect((await rejected(`--variant oss ${copies}`)).message).toContain(
    "--copy-to-master: two of them write /a/b",
  );
});

test("a copy may take as long as --timeout says", async () => {
  const planCopy = async (_: CopyRequest, signal: AbortSignal): Promise<never> => {
    // A limit that has already passed would be noticed now.
    await new Promise((resolve) => setTimeout(resolve));
    signal.throwIfAborted();
    throw gone;
  };
  expect((await failureOf(copy("--timeout 1h", { planCopy }))).message).toBe("It is gone.");
});

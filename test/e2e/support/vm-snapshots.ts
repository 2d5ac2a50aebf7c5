/** What becomes of a snapshot "installed" of a cluster of virtual machines: other clusters. */
import { expect } from "bun:test";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { TestVms } from "./test-vms.ts";

/** A cluster of a user who has only the snapshot's file. */
export async function continueElsewhere(vms: TestVms, sourceId: string): Promise<void> {
  const file = join(vms.folder, "cluster.zst");
  const saved = await vms.run(["snapshot", "save", "installed", file, "-c", sourceId]);
  expect({ status: saved.status, stdout: saved.stdout }, saved.stderr).toEqual({
    status: 0,
    stdout: `${file}\n`,
  });
  expect(saved.stderr).toContain("holds the secrets of the cluster");
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  const again = await vms.run(["snapshot", "save", "installed", file, "-c", sourceId]);
  expect(again).toMatchObject({ status: 2, stderr: expect.stringContaining("pass --replace") });
  const folder = join(vms.folder, "second");
  const elsewhere = {
    XDG_STATE_HOME: join(folder, "state"),
    XDG_CACHE_HOME: join(folder, "cache"),
  };
  const there = (...words: readonly string[]) => vms.run(words, { environment: elsewhere });
  const copy = vms.id("elsewhere");
  const created = await there("create", "--from", file, "-c", copy, "--wait");
  expect({ status: created.status, stdout: created.stdout }, created.stderr).toEqual({
    status: 0,
    stdout: `${copy}\n`,
  });
  const onAgent = async (cluster: string, run: typeof there) =>
    (
      await run(
        "run",
        "-c",
        cluster,
        "--no-test-env",
        "--node",
        "agent_0",
        "cat /proc/sys/kernel/random/boot_id",
      )
    ).stdout;
  expect(await onAgent(copy, there)).toBe(
    await onAgent(sourceId, async (...words) => vms.run(words)),
  );
  expect(await there("run", "-c", copy, "srun", "-N1", "hostname")).toMatchObject({
    stdout: "agent-0\n",
  });
  expect((await there("list", "--quiet")).stdout).toBe(`${copy}\n`);
  expect(await there("destroy", "-c", copy)).toMatchObject({ status: 0, stdout: `${copy}\n` });
  const left = await readdir(folder, { recursive: true });
  expect(
    left.filter((name) => /machines|disk|memory|cluster\.json|\.part$|\/draft$/.test(name)),
  ).toEqual([]);
}

/** A cluster in which the command of `once` failed. */
export async function continueFailed(vms: TestVms, sourceId: string): Promise<void> {
  const [own, again] = [vms.id("failing"), vms.id("again")];
  const file = join(vms.folder, "out", "failed.zst");
  const words = [
    "once",
    "--from",
    `${sourceId}:installed`,
    "-c",
    own,
    "--no-test-env",
    "--save-on-failure",
    file,
  ];
  const ran = await vms.run([
    ...words,
    "--",
    "nohup sh -c 'sleep 86400; :' >/dev/null 2>&1 & echo $!; exit 7",
  ]);
  expect({ status: ran.status, stdout: ran.stdout }, ran.stderr).toEqual({
    status: 7,
    stdout: expect.stringMatching(/^\d+\n$/),
  });
  expect(ran.stderr).toContain("Bring the cluster back as it was: cluster-vm create --from");
  expect((await vms.machines(own)).size).toBe(0);
  expect(
    (await vms.files(own)).filter((name) => /machines|disk|cluster\.json|snapshots/.test(name)),
  ).toEqual([]);
  const created = await vms.run(["create", "--from", file, "-c", again]);
  expect(created.status, created.stderr).toBe(0);
  const command = await vms.run([
    "run",
    "-c",
    again,
    "--no-test-env",
    `cat /proc/${ran.stdout.trim()}/cmdline`,
  ]);
  expect(command.stdout, command.stderr).toContain("sleep 86400");
  expect((await vms.run(["destroy", "-c", again])).status).toBe(0);
}
